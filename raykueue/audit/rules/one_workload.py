"""Rule `one-workload`: a managed job has one unfinished Workload, and nothing below it has any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from raykueue.audit.answers import Obligation
from raykueue.audit.books.changes import Change, JobChange, ObjectChange
from raykueue.audit.books.entities import RAY_KINDS, Job
from raykueue.audit.books.fold import Books
from raykueue.audit.books.workloads import unfinished
from raykueue.audit.rules.episodes import Episode, Episodes, describe_refs
from raykueue.audit.rules.rule import Rule, finding_id, lasting
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.model import rayjobs, views
from raykueue.model.events import Marker, Moment, Object
from raykueue.model.findings import Class, Finding
from raykueue.model.workloads import elastic, replaces

_MANY, _NONE, _CHILD = "many", "none", "child"
_NEVER_MANAGED = frozenset({"kube-system", "kueue-system"})
_TELLS = {
    "two-workloads": "Kueue keeps one and deletes the others",
    "unrelated-slices": "of two slices, one must replace the other",
    "child-workload": "it is charged with its RayJob already",
    "no-workload": "it can never start",
    "cannot-compose": "it has more PodSets than a Workload may have",
}


class OneWorkload(Rule):
    """Counts Workloads by controller UID. A deleting or finished one is none too many; a finished one is one.

    Kueue waits with a Workload until the job is inactive, so only that time counts. Not looked at: jobs that Kueue
    skips by design, a prebuilt Workload that has yet to come, what elastic slices have below them.
    """

    name: ClassVar[str] = "one-workload"
    sentence: ClassVar[str] = "a managed job has one unfinished Workload, and its children have none"
    klass: ClassVar[Class] = "contract"
    why: ClassVar[str] = "two Workloads book the same pods twice; a job without one waits for ever"
    source: ClassVar[str] = (
        "kueue pkg/controller/jobframework/reconciler.go:390-405, :978, :1795-1812@v0.19.2 (children, excess, active)"
    )
    thresholds: ClassVar[tuple[str, ...]] = ("workload", "restart")
    sees: ClassVar[frozenset[type | str] | None] = frozenset({JobChange, "Workload", *RAY_KINDS})

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._episodes = Episodes(thresholds.restart)

    def see(self, change: Change) -> None:
        match change:
            case JobChange():
                self._review(change.job, change.moment)
            case ObjectChange() if change.ref.kind == "Workload":
                self._child(change)
                for owner in {views.controller(o) for o in (change.before, change.after) if o is not None}:
                    job = self.books.job(owner.uid) if owner is not None else None
                    if job is not None:
                        self._review(job, change.moment)
            case ObjectChange() if change.ref.kind in RAY_KINDS:
                known = self.books.job(change.ref.uid)
                if known is not None:
                    self._review(known, change.moment)

    def mark(self, marker: Marker, moment: Moment) -> None:
        self._episodes.mark(marker, moment)

    def findings(self) -> Iterator[Finding]:
        for one in self._episodes.late(self.now):
            yield self._finding(one)

    def obligations(self, scope: Scope) -> Iterable[Obligation]:
        for one, until in self._episodes.pending(scope, self.now):
            yield Obligation(self.name, f"{one.job.ref} has no Workload yet", until)

    def forget(self, scope: Scope) -> None:
        self._episodes.forget(scope)

    def _review(self, job: Job, moment: Moment) -> None:
        if job.ref.kind not in RAY_KINDS:
            return
        there = [w for w in self.books.workloads(job.ref.uid) if not views.deleting(w)]
        open_ones = [w for w in there if unfinished(w)]
        cause = "" if job.skipped else _too_many(job, open_ones)
        if cause:
            many = self._episodes.open(job, _MANY, cause, None, moment)
            many.refs |= {views.uid(w): views.ref("Workload", w) for w in open_ones}
        else:
            self._episodes.close(job.ref.uid, _MANY, moment)
        if not there and job.object is not None and self._due(job, job.object):
            lacks = rayjobs.too_many_pod_sets(job.object, self.pair["kueue"])
            cause = "cannot-compose" if lacks else "no-workload"
            self._episodes.open(job, _NONE, cause, self.limits.workload, moment)
        else:
            self._episodes.close(job.ref.uid, _NONE, moment)

    def _due(self, job: Job, obj: Object) -> bool:
        """Kueue has all that it waits for to make a Workload."""
        return (
            job.managed
            and not job.skipped
            and (job.ref.kind == "RayJob" or (job.ref.kind == "RayCluster" and views.controller(obj) is None))
            and job.ref.namespace not in _NEVER_MANAGED
            and not views.deleting(obj)
            and not rayjobs.prebuilt(obj)
            and rayjobs.inactive(job.ref.kind, obj, self.pair["kueue"])
        )

    def _child(self, change: ObjectChange) -> None:
        """A Workload of something that a managed RayJob controls, directly or not."""
        top = self._top(change.after if change.after is not None else change.before)
        if top is None:
            return
        what = f"{_CHILD} {change.ref.uid}"
        if change.after is not None and top.managed and not top.skipped and not _elastic(top):
            self._episodes.open(top, what, "child-workload", None, change.moment).refs[change.ref.uid] = change.ref
        else:
            self._episodes.close(top.ref.uid, what, change.moment)

    def _top(self, workload: Object | None) -> Job | None:
        owner = views.controller(workload) if workload is not None else None
        if owner is None or owner.kind not in ("RayCluster", "Job"):
            return None
        while owner is not None and owner.kind != "RayJob":
            known = self.books.identities.get(owner.uid)
            owner = known.owner if known is not None else None
        return self.books.job(owner.uid) if owner is not None else None

    def _finding(self, one: Episode) -> Finding:
        window = one.window
        seconds = window.seconds(self.now)
        time = lasting(seconds, still=window.end is None)
        if one.cause in ("no-workload", "cannot-compose"):
            text = f"{one.job.ref} had no Workload {time} (allowed: {self.limits.workload:g} s)"
        elif one.cause == "child-workload":
            text = f"Workload {describe_refs(one.refs)} stands for a child of {one.job.ref} {time}"
        else:
            text = f"{one.job.ref} had {len(one.refs)} unfinished Workloads {time} ({describe_refs(one.refs)})"
        return Finding(
            id=finding_id(self.name, f"{one.job.ref.uid} {one.cause}", window.begin.rev),
            rule=self.name,
            klass="contract",
            cause=one.cause,
            text=f"{text}: {_TELLS[one.cause]}",
            objects=(one.job.ref, *one.refs.values()),
            begin=window.begin,
            end=window.end,
            namespace=one.job.ref.namespace,
            seconds=(seconds, seconds),
        )


def _elastic(job: Job) -> bool:
    return job.object is not None and elastic(job.object)


def _too_many(job: Job, open_ones: list[Object]) -> str:
    """The cause, if these are more unfinished Workloads than the job may have."""
    if len(open_ones) < 2:
        return ""
    if not (_elastic(job) or any(elastic(w) for w in open_ones)):
        return "two-workloads"
    names = {views.name(w) for w in open_ones}
    related = any(replaces(w) in names - {views.name(w)} for w in open_ones)
    return "" if len(open_ones) == 2 and related else "unrelated-slices"
