"""Rule `released-in-time`: quota is not held for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from raykueue.audit.answers import Obligation
from raykueue.audit.books.changes import Change, HoldChange, ObjectChange, PodChange
from raykueue.audit.books.entities import Hold, Job, Pod, PodState
from raykueue.audit.books.fold import Books
from raykueue.audit.rules.rule import Rule, finding_id, lasting
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds, ns
from raykueue.audit.uptime import Deadlines, Uptime
from raykueue.audit.windows import Window
from raykueue.model import views
from raykueue.model.events import Marker, Moment
from raykueue.model.findings import Class, Finding
from raykueue.model.gates import gate
from raykueue.model.quantities import add, describe_all
from raykueue.model.rayjobs import (
    RETRYING,
    SUSPENDED,
    VALIDATION_FAILED,
    deployment_status,
    ended,
    wants_suspension,
)
from raykueue.model.workloads import EVICTED

_KINDS = ("RayJob", "RayCluster")
_SUSPENDED = frozenset({"", "New", SUSPENDED})
_RELEASES_INVALID = gate("invalid-job-on-hold")
_TELLS = {
    "evicted": "it was evicted, and its quota is still reserved",
    "validation-failed": "its job failed validation",
    "never-a-pod": "its job runs, and never had a pod",
    "suspended": "its job is suspended",
    "ended": "its job has ended",
}


@dataclass(slots=True, eq=False)
class _Idle:
    """One time in which an open hold paid for no live pod."""

    hold: Hold
    job: Job
    window: Window
    waiting: frozenset[str] = frozenset()
    """What is not ordinary about it and has a deadline that runs."""
    cause: str = ""
    """Whose deadline passed first: it is a finding."""


@dataclass(slots=True, eq=False)
class _Watch:
    """One open hold."""

    hold: Hold
    job: Job
    live: set[str] = field(default_factory=set)
    had_pods: bool = False
    idle: _Idle | None = None


class ReleasedInTime(Rule):
    """Judges open holds of RayJobs and RayClusters that pay for no live pod.

    Silent while a controller is known dead or warming up, for a job that is being deleted (`nothing-left` judges that),
    one that retries, and one that an AdmissionCheck keeps from being admitted.
    """

    name: ClassVar[str] = "released-in-time"
    sentence: ClassVar[str] = "quota is not held for nothing: charged without pods, beyond a bound"
    klass: ClassVar[Class] = "hazard"
    why: ClassVar[str] = "quota that is held without pods keeps others waiting, and no number shows it"
    source: ClassVar[str] = (
        "kueue pkg/controller/jobframework/reconciler.go:463-480, :653-668, "
        "pkg/controller/core/workload_controller.go:773-794@v0.19.2"
    )
    thresholds: ClassVar[tuple[str, ...]] = ("idle", "workload", "suspend", "restart")
    sees: ClassVar[frozenset[type | str] | None] = frozenset({HoldChange, PodChange, "Workload", *_KINDS})

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._watched: dict[str, _Watch] = {}  # by UID of the Workload
        self._deadlines: Deadlines[tuple[str, str]] = Deadlines(Uptime(ns(thresholds.restart)))
        self._found: list[_Idle] = []
        self._bounds = {
            "evicted": thresholds.idle,
            "validation-failed": thresholds.workload,
            "never-a-pod": thresholds.idle,
            "suspended": thresholds.suspend,
            "ended": thresholds.workload,
        }

    def see(self, change: Change) -> None:
        self._expire(change.moment.t)
        match change:
            case HoldChange():
                self._hold(change)
            case PodChange():
                self._pod(change.pod, change.before, change.after, change.moment)
            case ObjectChange() if change.ref.kind in _KINDS:
                job = self.books.job(change.ref.uid)
                for hold in job.holds if job else ():
                    self._judge(hold.ref.uid, change.moment)
            case ObjectChange() if change.ref.kind == "Workload":
                self._judge(change.ref.uid, change.moment)

    def mark(self, marker: Marker, moment: Moment) -> None:
        self._expire(moment.t)
        self._deadlines.uptime.mark(marker, moment.t)

    def advance(self, now: int) -> None:
        super().advance(now)
        self._expire(now)

    def findings(self) -> Iterator[Finding]:
        for one in self._found:
            yield self._finding(one)

    def obligations(self, scope: Scope) -> Iterable[Obligation]:
        for uid, one in self._watched.items():
            for cause in sorted(one.idle.waiting) if one.idle is not None and _owns(scope, one) else ():
                text = f"{one.hold} pays for no live pod: {_TELLS[cause]}"
                yield Obligation(self.name, text, self._deadlines.until((uid, cause)))

    def forget(self, scope: Scope) -> None:
        self._found = [one for one in self._found if not _owns(scope, one)]
        for uid in [uid for uid, one in self._watched.items() if _owns(scope, one)]:
            self._wait(uid, self._watched.pop(uid).idle, frozenset(), 0)

    def _hold(self, change: HoldChange) -> None:
        uid = change.hold.ref.uid
        if change.after is None:
            one = self._watched.pop(uid, None)
            if one is not None:
                self._end(uid, one, change.moment)
            return
        job = self.books.job(change.hold.job)
        if change.before is None and job is not None and job.ref.kind in _KINDS:
            self._watched[uid] = _Watch(change.hold, job)
        self._judge(uid, change.moment)

    def _pod(self, pod: Pod, before: PodState | None, after: PodState | None, moment: Moment) -> None:
        for hold in {s.payer for s in (before, after) if s is not None and s.payer is not None}:
            one = self._watched.get(hold.ref.uid)
            if one is None or one.hold is not hold:
                continue
            one.had_pods = True
            if after is not None and after.live and after.payer is hold:
                one.live.add(pod.ref.uid)
            else:
                one.live.discard(pod.ref.uid)
            self._judge(hold.ref.uid, moment)

    def _judge(self, uid: str, moment: Moment) -> None:
        """Opens and closes the window; starts, keeps and drops the deadline."""
        one = self._watched.get(uid)
        if one is None:
            return
        waits_for_a_check = not one.hold.charge.admitted and not views.is_true(one.hold.workload, EVICTED)
        if one.live or waits_for_a_check or not one.hold.charge.totals:
            self._end(uid, one, moment)
            return
        one.idle = one.idle or _Idle(one.hold, one.job, Window(moment))
        one.idle.window.set(moment, _idle(one.hold))
        if not one.idle.cause:
            self._wait(uid, one.idle, frozenset(_causes(one)), moment.t)

    def _end(self, uid: str, one: _Watch, moment: Moment) -> None:
        """A pod is there, or nothing is held any more."""
        self._wait(uid, one.idle, frozenset(), moment.t)
        if one.idle is not None:
            one.idle.window.close(moment)
            one.idle = None

    def _wait(self, uid: str, idle: _Idle | None, causes: frozenset[str], t: int) -> None:
        """These deadlines run from now on, and no others; one that runs already goes on."""
        if idle is not None:
            for cause in idle.waiting - causes:
                self._deadlines.drop((uid, cause))
            for cause in sorted(causes - idle.waiting):
                self._deadlines.set((uid, cause), t, ns(self._bounds[cause]))
            idle.waiting = causes

    def _expire(self, t: int) -> None:
        for (uid, cause), _ in self._deadlines.passed(t):
            idle = self._watched[uid].idle
            if idle is not None:
                self._wait(uid, idle, frozenset(), t)
                idle.cause = cause
                self._found.append(idle)

    def _finding(self, one: _Idle) -> Finding:
        window = one.window
        seconds = window.seconds(self.now)
        text = (
            f"{one.job.ref}: {one.hold} held {describe_all(window.peak)} without any pod "
            f"{lasting(seconds, still=window.end is None)}: {_TELLS[one.cause]} "
            f"(allowed: {self._bounds[one.cause]:g} s)"
        )
        return Finding(
            id=finding_id(self.name, one.hold.payer, window.begin.rev),
            rule=self.name,
            klass=self._class(one.cause),
            cause=one.cause,
            text=text,
            objects=(one.job.ref, one.hold.ref),
            begin=window.begin,
            end=window.end,
            namespace=one.hold.ref.namespace,
            cluster_queue=one.hold.charge.cluster_queue,
            payer=one.hold.payer,
            peak=window.peak,
            resource_seconds=window.resource_seconds(self.now),
            seconds=(seconds, seconds),
        )

    def _class(self, cause: str) -> Class:
        promised = cause == "validation-failed" and _RELEASES_INVALID.open_for(self.pair)
        return "contract" if promised else "hazard"


def _causes(one: _Watch) -> Iterator[str]:
    """What is not ordinary about a hold without live pods."""
    job = one.job.object
    if job is None or views.deleting(job) or deployment_status(job) == RETRYING:
        return
    status, suspended = deployment_status(job), wants_suspension(job)
    if views.is_true(one.hold.workload, EVICTED):
        yield "evicted"
    if not one.hold.charge.admitted:
        return
    if status == VALIDATION_FAILED:
        yield "validation-failed"
    elif ended(job):
        yield "ended"
    elif suspended and status in _SUSPENDED:
        yield "suspended"
    elif not (suspended or one.had_pods or one.hold.before_journal):
        yield "never-a-pod"


def _idle(hold: Hold) -> dict[str, int]:
    """What is charged for nothing: without live pods there is no demand."""
    return add(*({resource: value} for (_, resource), value in hold.charge.totals.items()))


def _owns(scope: Scope, one: _Idle | _Watch) -> bool:
    return scope.owns(one.hold.ref.namespace, one.hold.charge.cluster_queue)
