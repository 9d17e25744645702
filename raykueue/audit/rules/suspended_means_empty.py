"""Rule `suspended-means-empty`: suspended jobs have no pods, are suspended when told to, and others are admitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from raykueue.audit.answers import Obligation
from raykueue.audit.books.changes import Change, HoldChange, JobChange, ObjectChange, PodChange
from raykueue.audit.books.entities import Job, Pod, PodState
from raykueue.audit.books.fold import Books
from raykueue.audit.books.workloads import unfinished
from raykueue.audit.rules.episodes import Episode, Episodes, describe_refs
from raykueue.audit.rules.rule import Rule, finding_id, lasting
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.model import rayjobs, views
from raykueue.model.events import Marker, Moment, Object
from raykueue.model.findings import Class, Finding
from raykueue.model.quantities import PODS, add, describe_all, sub
from raykueue.model.workloads import ADMITTED, elastic

_KINDS = frozenset({"RayJob", "RayCluster"})
_SHOWN = 20

_PAID, _UNPAID, _UNHEEDED, _UNADMITTED = "pods-still-paid", "pods-never-paid", "unheeded", "not-admitted"
_WAITING, _INVALID, _SLOW = "waiting-ignores-suspend", "validation-failed-ignores-suspend", "not-suspended"
_CLASS: dict[str, Class] = {_PAID: "hazard", _UNPAID: "hazard"}
_TELLS = {
    _PAID: "its quota is not given back, either",
    _UNPAID: "nobody ever paid for them",
    _SLOW: "KubeRay did not do it",
    _WAITING: "KubeRay does not look while the job is Waiting",
    _INVALID: "KubeRay does not look once validation failed",
    _UNADMITTED: "Kueue neither admitted nor suspended it",
}


class SuspendedMeansEmpty(Rule):
    """Judges RayJobs, and RayClusters that are jobs of their own.

    Pods of a suspended job whose hold has ended are `no-survivors`' matter, those of a managed job that never had one
    `pods-covered`'s. Nothing is judged once the job is being deleted, nor while a controller is known dead.
    """

    name: ClassVar[str] = "suspended-means-empty"
    sentence: ClassVar[str] = (
        "a job that says it is suspended has no pods; one told to suspend does; one that is not suspended is admitted"
    )
    klass: ClassVar[Class] = "contract"
    why: ClassVar[str] = "Kueue gives the quota of a suspended job to others: its pods must be gone, or never start"
    source: ClassVar[str] = (
        "kuberay ray-operator/controllers/ray/rayjob_controller.go:387-389, :1015-1032, "
        "apis/ray/v1/rayjob_types.go:295-300@v1.6.2; kueue pkg/controller/jobs/rayjob/rayjob_controller.go:108-109, "
        "pkg/controller/jobframework/reconciler.go:653-668@v0.19.2"
    )
    thresholds: ClassVar[tuple[str, ...]] = ("handback", "gc", "heed", "redis", "resuspend", "restart")
    sees: ClassVar[frozenset[type | str] | None] = frozenset({PodChange, HoldChange, JobChange, "Workload", *_KINDS})

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._episodes = Episodes(thresholds.restart)
        self._places: dict[str, str] = {}
        self._asked: dict[tuple[str, str], dict[str, Mapping[str, int]]] = {}
        self._total: dict[tuple[str, str], dict[str, int]] = {}

    def see(self, change: Change) -> None:
        match change:
            case PodChange():
                self._pod(change.pod, change.after, change.moment)
            case HoldChange(after=None):
                for pod in self.books.payees(change.hold):
                    self._pod(pod, pod.state, change.moment)
            case JobChange():
                self._pods_of(change.job, change.moment)
            case ObjectChange() if change.ref.kind in _KINDS:
                job = self.books.job(change.ref.uid)
                if job is not None:
                    if _empty(change.ref.kind, change.before) != _empty(change.ref.kind, change.after):
                        self._pods_of(job, change.moment)
                    self._review(job, change.moment)
            case ObjectChange() if change.ref.kind == "Workload":
                for owner in {views.controller(o) for o in (change.before, change.after) if o is not None}:
                    known = self.books.job(owner.uid) if owner is not None else None
                    if known is not None:
                        self._review(known, change.moment)

    def mark(self, marker: Marker, moment: Moment) -> None:
        self._episodes.mark(marker, moment)

    def findings(self) -> Iterator[Finding]:
        for one in self._episodes.late(self.now):
            yield self._finding(one)

    def obligations(self, scope: Scope) -> Iterable[Obligation]:
        for one, until in self._episodes.pending(scope, self.now):
            yield Obligation(self.name, _story(one), until)

    def forget(self, scope: Scope) -> None:
        self._episodes.forget(scope)
        gone = [key for key in self._asked if self._episodes.lasting(*key) is None]
        for key in gone:
            for uid in self._asked.pop(key):
                self._places.pop(uid, None)
            del self._total[key]

    # -- suspended in status: no pods

    def _pods_of(self, job: Job, moment: Moment) -> None:
        for uid in sorted(job.pods):
            pod = self.books.pod(uid)
            if pod is not None:
                self._pod(pod, pod.state, moment)

    def _pod(self, pod: Pod, state: PodState | None, moment: Moment) -> None:
        what = _place(pod, state) if state is not None else ""
        last = self._places.get(pod.ref.uid, "")
        if last and last != what:
            self._leave(pod, last, moment)
        if what and state is not None:
            self._enter(pod, what, state, moment)

    def _enter(self, pod: Pod, what: str, state: PodState, moment: Moment) -> None:
        job, key = pod.job, (pod.job.ref.uid, what)
        limit = self.limits.handback if what == _PAID else self.limits.gc + job.grace
        one = self._episodes.open(job, what, what, limit, moment)
        one.refs[pod.ref.uid] = pod.ref
        if what == _PAID and state.payer is not None:
            one.refs[state.payer.ref.uid] = state.payer.ref
        asked = self._asked.setdefault(key, {})
        demand = {r: value for r, value in state.demand.items() if r != PODS}
        total = sub(add(self._total.get(key, {}), demand), asked.get(pod.ref.uid, {}))
        self._places[pod.ref.uid] = what
        asked[pod.ref.uid] = demand
        self._total[key] = total
        one.window.set(moment, total)

    def _leave(self, pod: Pod, what: str, moment: Moment) -> None:
        key = (pod.job.ref.uid, what)
        del self._places[pod.ref.uid]
        demand = self._asked[key].pop(pod.ref.uid)
        one = self._episodes.lasting(*key)
        if self._asked[key] and one is not None:
            self._total[key] = sub(self._total[key], demand)
            one.window.set(moment, self._total[key])
        else:
            del self._asked[key], self._total[key]
            self._episodes.close(*key, moment)

    # -- suspended in spec: obeyed; not suspended: admitted

    def _review(self, job: Job, moment: Moment) -> None:
        uid = job.ref.uid
        obj = job.object if self._judged(job) else None
        unheeded = _unheeded(job, obj) if obj is not None else ""
        if unheeded and obj is not None:
            limit = self.limits.heed + (self.limits.redis if rayjobs.fault_tolerant(obj) else 0.0)
            one = self._episodes.open(job, _UNHEEDED, unheeded, limit, moment)
            one.cause = unheeded if one.cause == _SLOW else one.cause
        else:
            self._episodes.close(uid, _UNHEEDED, moment)
        pending = self._not_admitted(job, obj) if obj is not None else None
        if pending is not None:
            late = self._episodes.open(job, _UNADMITTED, _UNADMITTED, self.limits.resuspend, moment)
            late.refs[views.uid(pending)] = views.ref("Workload", pending)
        else:
            self._episodes.close(uid, _UNADMITTED, moment)

    def _judged(self, job: Job) -> bool:
        return job.ref.kind in _KINDS and not job.skipped and not self.books.identities.is_child(job.ref.uid)

    def _not_admitted(self, job: Job, obj: Object) -> Object | None:
        """The newest unfinished Workload of an unsuspended job, if it is not admitted though it should be."""
        exempt = rayjobs.ended(obj) or rayjobs.prebuilt(obj) or elastic(obj) or views.deleting(obj)
        invalid = rayjobs.deployment_status(obj) == rayjobs.VALIDATION_FAILED
        if not job.managed or rayjobs.wants_suspension(obj) or exempt or invalid:
            return None
        open_ones = [w for w in self.books.workloads(job.ref.uid) if unfinished(w)]
        return open_ones[-1] if open_ones and not views.is_true(open_ones[-1], ADMITTED) else None

    def _finding(self, one: Episode) -> Finding:
        window = one.window
        seconds = window.seconds(self.now)
        allowed = f" (allowed: {one.limit:g} s)" if one.limit is not None else ""
        text = f"{_story(one, lasting(seconds, still=window.end is None))}{allowed}: {_TELLS[one.cause]}"
        return Finding(
            id=finding_id(self.name, f"{one.job.ref.uid} {one.cause}", window.begin.rev),
            rule=self.name,
            klass=_CLASS.get(one.cause, "contract"),
            cause=one.cause,
            text=text,
            objects=(one.job.ref, *one.refs.values())[:_SHOWN],
            begin=window.begin,
            end=window.end,
            namespace=one.job.ref.namespace,
            peak=window.peak,
            resource_seconds=window.resource_seconds(self.now),
            seconds=(seconds, seconds),
        )


def _empty(kind: str, obj: Object | None) -> bool:
    """It claims to have no pods. One that is being deleted claims nothing any more."""
    return obj is not None and not views.deleting(obj) and rayjobs.says_suspended(kind, obj)


def _place(pod: Pod, state: PodState) -> str:
    """What is wrong about a live pod, if its job is suspended and no other rule accounts for it."""
    job = pod.job
    if (
        not state.live
        or state.gated
        or job.skipped
        or job.ref.kind not in _KINDS
        or not _empty(job.ref.kind, job.object)
    ):
        return ""
    if state.payer is not None:
        return _PAID if state.payer.end is None else ""
    return _UNPAID if pod.never_charged and not job.managed else ""


def _unheeded(job: Job, obj: Object) -> str:
    """The cause, if the job is told to suspend and has not. A retry finishes first; what is over is never suspended."""
    kind = job.ref.kind
    over = rayjobs.ended(obj) or views.deleting(obj) or rayjobs.says_suspended(kind, obj)
    if over or not rayjobs.wants_suspension(obj):
        return ""
    said = rayjobs.deployment_status(obj)
    if said == rayjobs.RETRYING:
        return ""
    if said == rayjobs.VALIDATION_FAILED:
        return _INVALID if job.pods else ""
    return _WAITING if said == rayjobs.WAITING else _SLOW


def _story(one: Episode, time: str = "") -> str:
    """What is wrong, for people; `time` says for how long."""
    pause = f" {time}" if time else ""
    if one.cause in (_PAID, _UNPAID):
        pods = describe_refs({uid: ref for uid, ref in one.refs.items() if ref.kind == "Pod"})
        return f"{one.job.ref} is suspended, but pods {pods} ({describe_all(one.window.peak)}) live on{pause}"
    if one.cause == _UNADMITTED:
        return f"{one.job.ref} is not suspended{pause}, though Workload {describe_refs(one.refs)} is not admitted"
    return f"{one.job.ref} is not suspended{pause}, though spec.suspend is true"
