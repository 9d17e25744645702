"""Rule `nothing-left`: after its deletion nothing that descends from a RayJob survives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from raykueue.audit.answers import Obligation
from raykueue.audit.books.changes import Change, ObjectChange
from raykueue.audit.books.entities import Job
from raykueue.audit.books.fold import Books
from raykueue.audit.rules.lineage import KINDS as DESCENDANTS
from raykueue.audit.rules.lineage import Lineage, Relative, foreground
from raykueue.audit.rules.rule import Rule, finding_id, lasting
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds, ns
from raykueue.audit.uptime import Deadlines, Uptime
from raykueue.audit.windows import Window
from raykueue.model import views
from raykueue.model.events import Marker, Moment
from raykueue.model.findings import Class, Finding, Ref
from raykueue.model.quantities import add, describe_all
from raykueue.model.rayjobs import fault_tolerant
from raykueue.model.workloads import charge, holds

_CLASS: dict[str, Class] = {
    "left-behind": "invariant",
    "no-owner": "contract",
    "workload-left": "contract",
    "holds-quota": "contract",
    "stuck-deleting": "hazard",
}
_TELLS = {
    "left-behind": "still there, though its owner is gone",
    "no-owner": "still there: it never had an owner that could take it along",
    "workload-left": "still there, Kueue did not let it go",
    "holds-quota": "still holds quota",
    "stuck-deleting": "its deletion was asked for, and it is still there",
}
OBJECTS = "objects"
"""What is counted where no quota is held."""
_SHOWN = 20


@dataclass(slots=True, eq=False)
class _Left:
    """What is left of one job for one cause."""

    cause: str
    since: Moment
    """When the deletion was asked for, or done."""
    window: Window
    refs: dict[str, Ref] = field(default_factory=dict)
    cluster_queue: str = ""


@dataclass(slots=True, eq=False)
class _Watch:
    """One job whose deletion was asked for."""

    job: Job
    since: Moment
    """Of the question; of the deletion, once it is gone."""
    passed: dict[str, Moment] = field(default_factory=dict)
    """Deadlines that did."""
    open: dict[str, _Left] = field(default_factory=dict)


class NothingLeft(Rule):
    """Judges managed RayJobs. What a foreign finalizer keeps, and what was orphaned on purpose, is not judged.

    The clock stands still while a controller is known dead.
    """

    name: ClassVar[str] = "nothing-left"
    sentence: ClassVar[str] = "after deletion nothing that descends from the job survives"
    klass: ClassVar[Class] = "invariant"
    why: ClassVar[str] = "what stays behind uses nodes, names and quota, and nobody owns it any more"
    source: ClassVar[str] = (
        "kubernetes.io/docs/concepts/architecture/garbage-collection; "
        "kueue pkg/controller/jobframework/reconciler.go:693@v0.19.2"
    )
    thresholds: ClassVar[tuple[str, ...]] = ("delete", "gc", "redis", "stuck", "restart")
    sees: ClassVar[frozenset[type | str] | None] = frozenset({"RayJob", *DESCENDANTS})

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._lineage = Lineage()
        self._watched: dict[str, _Watch] = {}
        self._deadlines: Deadlines[tuple[str, str]] = Deadlines(Uptime(ns(thresholds.restart)))
        self._found: list[tuple[_Watch, _Left]] = []

    def see(self, change: Change) -> None:
        self._expire(change.moment.t)
        if isinstance(change, ObjectChange):
            if change.ref.kind == "RayJob":
                self._job(change)
            top = self._lineage.learn(change)
            if top in self._watched:
                self._review(top, change.moment)

    def mark(self, marker: Marker, moment: Moment) -> None:
        self._expire(moment.t)
        self._deadlines.uptime.mark(marker, moment.t)

    def advance(self, now: int) -> None:
        super().advance(now)
        self._expire(now)

    def findings(self) -> Iterator[Finding]:
        for watch, left in self._found:
            yield self._finding(watch, left)

    def obligations(self, scope: Scope) -> Iterable[Obligation]:
        for uid, watch in self._watched.items():
            if not _owns(scope, watch):
                continue
            left = list(self._lineage.descendants(uid))
            owed = {
                "stuck": [watch.job.ref] if (uid, "stuck") in self._deadlines else [],
                "holds": [one.ref for one in left if _holds(one)],
                "gone": [one.ref for one in left if one.link != "orphan"],
            }
            for what, refs in owed.items():
                if refs and (uid, what) in self._deadlines:
                    text = f"{watch.job.ref} was deleted: {_names(refs)} still there"
                    yield Obligation(self.name, text, self._deadlines.until((uid, what)))

    def forget(self, scope: Scope) -> None:
        self._found = [(watch, left) for watch, left in self._found if not _owns(scope, watch)]
        for uid in [uid for uid, watch in self._watched.items() if _owns(scope, watch)]:
            self._drop(uid)
        for namespace in scope.namespaces:
            self._lineage.forget(namespace)

    def _job(self, change: ObjectChange) -> None:
        """Its deletion was asked for, or it is gone."""
        job, uid, moment = self.books.job(change.ref.uid), change.ref.uid, change.moment
        last = change.after or change.before
        if job is None or not job.judged or last is None:
            return
        limit = self.limits.delete + job.grace + (self.limits.redis if fault_tolerant(last) else 0.0)
        if change.after is None:
            self._deadlines.drop((uid, "stuck"))
            watch = self._watched.setdefault(uid, _Watch(job, moment))
            watch.since = moment
            watch.passed.clear()
            self._lineage.keep(uid)
            self._deadlines.set((uid, "holds"), moment.t, ns(self.limits.gc))
            self._deadlines.set((uid, "gone"), moment.t, ns(limit))
        elif views.deleting(change.after) and uid not in self._watched:
            self._watched[uid] = _Watch(job, moment)
            patience = max(self.limits.stuck, limit) if foreground(change.after) else self.limits.stuck
            self._deadlines.set((uid, "stuck"), moment.t, ns(patience))

    def _expire(self, t: int) -> None:
        for (uid, what), wall in self._deadlines.passed(t):
            watch = self._watched[uid]
            moment = Moment(watch.since.rev, wall)
            watch.passed[what] = moment
            self._review(uid, moment)

    def _review(self, uid: str, moment: Moment) -> None:
        """What is left now, for each deadline that passed: opens, moves and closes windows."""
        watch = self._watched[uid]
        left = self._left(uid, watch)
        for cause in [cause for cause in watch.open if cause not in left]:
            watch.open.pop(cause).window.close(moment)
        for cause, relatives in left.items():
            one = watch.open.get(cause)
            if one is None:
                one = watch.open[cause] = _Left(cause, watch.since, Window(moment))
                self._found.append((watch, one))
            one.refs |= {relative.ref.uid: relative.ref for relative in relatives}
            one.window.set(moment, self._level(one, relatives))
        if "gone" in watch.passed and not any(self._lineage.descendants(uid)):
            self._drop(uid)

    def _left(self, uid: str, watch: _Watch) -> dict[str, list[Relative]]:
        left: dict[str, list[Relative]] = {}
        if "stuck" in watch.passed:
            job = self._lineage.get(uid)
            if job is not None and not self._lineage.excused(job):
                left["stuck-deleting"] = [job]
        for one in self._lineage.descendants(uid) if watch.passed else ():
            if "holds" in watch.passed and _holds(one):
                left.setdefault("holds-quota", []).append(one)
            elif "gone" in watch.passed and one.link != "orphan" and not self._lineage.excused(one):
                owned = "workload-left" if one.ref.kind == "Workload" else "left-behind"
                left.setdefault("no-owner" if one.link == "label" else owned, []).append(one)
        return left

    def _level(self, left: _Left, relatives: list[Relative]) -> dict[str, int]:
        if left.cause != "holds-quota":
            return {OBJECTS: len(relatives)}
        charges = [charge(one.object) for one in relatives if one.object is not None]
        left.cluster_queue = charges[0].cluster_queue
        return add(*({resource: value} for c in charges for (_, resource), value in c.totals.items()))

    def _drop(self, uid: str) -> None:
        del self._watched[uid]
        for what in ("stuck", "holds", "gone"):
            self._deadlines.drop((uid, what))
        self._lineage.release(uid)

    def _finding(self, watch: _Watch, left: _Left) -> Finding:
        window = left.window
        seconds = window.seconds(self.now)
        still = window.end is None
        held = describe_all(window.peak) + " " if left.cause == "holds-quota" else ""
        subject = "" if left.cause == "stuck-deleting" else f"{_names(left.refs.values())} "
        age = (window.end.t if window.end else max(self.now, window.begin.t)) - left.since.t
        text = (
            f"{watch.job.ref}: {subject}{_TELLS[left.cause]} {held}{age / 1e9:.1f} s after its deletion; "
            f"beyond what is allowed {lasting(seconds, still=still)}"
        )
        others = [ref for uid, ref in left.refs.items() if uid != watch.job.ref.uid]
        return Finding(
            id=finding_id(self.name, f"{watch.job.ref.uid} {left.cause}", window.begin.rev),
            rule=self.name,
            klass=_CLASS[left.cause],
            cause=left.cause,
            text=text,
            objects=(watch.job.ref, *others[:_SHOWN]),
            begin=window.begin,
            end=window.end,
            namespace=watch.job.ref.namespace,
            cluster_queue=left.cluster_queue,
            peak=window.peak,
            resource_seconds=window.resource_seconds(self.now),
            seconds=(seconds, seconds),
        )


def _holds(one: Relative) -> bool:
    return one.ref.kind == "Workload" and one.object is not None and holds(one.object)


def _names(refs: Iterable[Ref]) -> str:
    listed = sorted(f"{ref.kind} {ref.name}" for ref in refs)
    more = f" and {len(listed) - 3} more" if len(listed) > 3 else ""
    return ", ".join(listed[:3]) + more


def _owns(scope: Scope, watch: _Watch) -> bool:
    return scope.owns(watch.job.ref.namespace, "")
