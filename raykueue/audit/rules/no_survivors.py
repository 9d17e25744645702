"""Rule `no-survivors`: when a hold ends, none of its pods is live."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from raykueue.audit.answers import Obligation
from raykueue.audit.books.changes import Change, HoldChange, JobChange, ObjectChange, PodChange
from raykueue.audit.books.entities import Hold, Job, Pod, PodState
from raykueue.audit.books.fold import Books
from raykueue.audit.rules.endings import Ending, JobState, why
from raykueue.audit.rules.rule import Rule, finding_id, lasting
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds, ns
from raykueue.audit.windows import Window
from raykueue.model import views
from raykueue.model.events import Moment
from raykueue.model.findings import Class, Finding, Ref
from raykueue.model.quantities import PODS, add, describe_all, sub

_SHOWN = 20
_Key: TypeAlias = tuple[str, str]
"""(payer, or UID of the job; the cause that such pods have whatever ended their hold, or nothing)."""

_REDIS = Ending("redis-clean-up", "hazard", "the Redis clean-up of its job still runs")
_BORN = Ending("born-after-release", "hazard", "they were made while the job had no quota")
_ORPHANS = Ending("made-for-a-deleted-owner", "hazard", "they were made for an owner that had been deleted before")
_OF_THEIR_OWN = {ending.cause: ending for ending in (_REDIS, _BORN, _ORPHANS)}


@dataclass(slots=True, eq=False)
class _Survival:
    """One time in which live pods outlived the hold that paid for them, or were born without one."""

    key: _Key
    job: Job
    hold: Hold | None
    ending: Ending
    window: Window
    live: dict[str, Mapping[str, int]] = field(default_factory=dict)
    total: dict[str, int] = field(default_factory=dict)
    pods: dict[str, Ref] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    terminating: set[str] = field(default_factory=set)


class NoSurvivors(Rule):
    """Per hold; its payer is fixed at a pod's birth, so a re-admission hides nothing."""

    name: ClassVar[str] = "no-survivors"
    sentence: ClassVar[str] = "when a hold ends, none of its pods is live"
    klass: ClassVar[Class] = "hazard"
    why: ClassVar[str] = "quota that was given back is still used, while somebody else may be given it"
    source: ClassVar[str] = (
        "kueue pkg/controller/jobframework/interface.go:64 (contract); keps/83-workload-preemption/README.md:71-75, "
        ":156, keps/6143-quota-release-strategy/README.md:34-37, :69-72@v0.19.2 (nobody promised)"
    )
    thresholds: ClassVar[tuple[str, ...]] = ("born", "delete", "redis")
    sees: ClassVar[frozenset[type | str] | None] = frozenset({PodChange, HoldChange, JobChange, "RayJob", "RayCluster"})

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._open: dict[_Key, _Survival] = {}
        self._places: dict[str, _Key] = {}
        self._found: list[_Survival] = []
        self._states: dict[str, JobState] = {}
        self._gone: dict[str, Moment] = {}

    def see(self, change: Change) -> None:
        match change:
            case PodChange():
                self._pod(change.pod, change.after, change.moment)
            case HoldChange(after=None):
                for pod in self.books.payees(change.hold):
                    self._pod(pod, pod.state, change.moment)
            case JobChange():
                for uid in sorted(change.job.pods):
                    known = self.books.pod(uid)
                    if known is not None:
                        self._pod(known, known.state, change.moment)
            case ObjectChange() if change.ref.kind in ("RayJob", "RayCluster"):
                self._job(change)

    def findings(self) -> Iterator[Finding]:
        for one in self._found:
            yield self._finding(one)

    def obligations(self, scope: Scope) -> Iterable[Obligation]:
        for one in self._open.values():
            namespace, uid = one.job.ref.namespace, one.job.ref.uid
            if not scope.owns(namespace, ""):
                continue
            until: int | None = None
            if uid in self._gone:
                wait = self.limits.delete + one.job.grace + (self.limits.redis if one.ending is _REDIS else 0)
                until = self._gone[uid].t + ns(wait)
            yield Obligation(self.name, f"{one.job.ref}: {_names(one)} still live, and nobody pays", until)

    def forget(self, scope: Scope) -> None:
        self._found = [o for o in self._found if not scope.owns(o.job.ref.namespace, "")]
        for job in [uid for uid in self._states if self.books.job(uid) is None]:
            del self._states[job]
        for job in [uid for uid in self._gone if self.books.job(uid) is None]:
            del self._gone[job]

    def _job(self, change: ObjectChange) -> None:
        if change.after is None:
            self._gone[change.ref.uid] = change.moment
            return
        status = views.status(change.after)
        said = str(status.get("jobDeploymentStatus", ""))
        if change.ref.kind == "RayCluster":
            said = "Suspended" if status.get("state") == "suspended" else str(status.get("state", "") or "not ready")
        before = self._states.get(change.ref.uid)
        if before is None or before.status != said:
            self._states[change.ref.uid] = JobState(said, change.moment)

    def _pod(self, pod: Pod, state: PodState | None, moment: Moment) -> None:
        """Its survival, if it has one now; gone, ended, gated and paid pods have none."""
        key = _key(pod, state) if state is not None else None
        last = self._places.get(pod.ref.uid)
        if last is not None and last != key:
            self._leave(last, pod, moment)
        if key is not None and state is not None:
            self._enter(key, pod, state, moment)

    def _enter(self, key: _Key, pod: Pod, state: PodState, moment: Moment) -> None:
        one = self._open.get(key)
        if one is None:
            one = _Survival(key, pod.job, state.payer, self._ending(key, pod, state), Window(moment))
            self._open[key] = one
            self._found.append(one)
        self._places[pod.ref.uid] = key
        demand = self._counted(one, state)
        one.total = sub(add(one.total, demand), one.live.get(pod.ref.uid, {}))
        one.live[pod.ref.uid] = demand
        one.pods[pod.ref.uid] = pod.ref
        if state.bound:
            one.bound.add(pod.ref.uid)
        if state.terminating:
            one.terminating.add(pod.ref.uid)
        one.window.set(moment, one.total)

    def _leave(self, key: _Key, pod: Pod, moment: Moment) -> None:
        del self._places[pod.ref.uid]
        one = self._open[key]
        one.total = sub(one.total, one.live.pop(pod.ref.uid))
        if one.live:
            one.window.set(moment, one.total)
        else:
            one.window.close(moment)
            del self._open[key]

    def _ending(self, key: _Key, pod: Pod, state: PodState) -> Ending:
        if key[1]:
            return _OF_THEIR_OWN[key[1]]
        assert state.payer is not None
        survivors = [p for p in self.books.payees(state.payer) if p.state.live and not p.state.gated and not p.cleanup]
        said = self._states.get(pod.job.ref.uid, JobState("", None))
        return why(state.payer, pod.job, survivors, said, self.pair)

    def _counted(self, one: _Survival, state: PodState) -> dict[str, int]:
        """Its demand of what the hold's ClusterQueue covers; of everything if there was no hold."""
        if one.hold is None:
            return {r: value for r, value in state.demand.items() if r != PODS}
        queue = self.books.queues.get(one.hold.charge.cluster_queue)
        wanted = {resource for _, resource in one.hold.charge.totals} | (queue.spec.covered if queue else frozenset())
        return {r: value for r, value in state.demand.items() if r in wanted}

    def _finding(self, one: _Survival) -> Finding:
        window, hold = one.window, one.hold
        charged = hold or one.job.latest
        seconds = window.seconds(self.now)
        klass = one.ending.klass
        if one.hold is None and one.ending is not _REDIS and seconds > self.limits.born:
            klass = "contract"
        outlived = f"outlived {hold}: {one.ending.tells}" if hold else one.ending.tells
        marks = [
            f"{len(found)} {what}"
            for found, what in ((one.bound, "on a node"), (one.terminating, "terminating"))
            if found
        ]
        text = (
            f"{one.job.ref}: {_names(one)} used {describe_all(window.peak)} unpaid "
            f"{lasting(seconds, still=window.end is None)}; {outlived}" + (f" ({', '.join(marks)})" if marks else "")
        )
        refs = [one.job.ref, *([hold.ref] if hold else []), *one.pods.values()]
        return Finding(
            id=finding_id(self.name, " ".join(one.key).strip(), window.begin.rev),
            rule=self.name,
            klass=klass,
            cause=one.ending.cause,
            text=text,
            objects=tuple(refs[:_SHOWN]),
            begin=window.begin,
            end=window.end,
            namespace=one.job.ref.namespace,
            cluster_queue=charged.charge.cluster_queue if charged else "",
            payer=hold.payer if hold else "",
            peak=window.peak,
            resource_seconds=window.resource_seconds(self.now),
            seconds=(seconds, seconds),
        )


def _key(pod: Pod, state: PodState) -> _Key | None:
    if not pod.job.judged or not state.live or state.gated:
        return None
    if state.payer is not None:
        return (state.payer.payer, _REDIS.cause if pod.cleanup else "") if state.payer.end is not None else None
    # Of a pod that was there before the journal nobody knows who paid when it was born.
    if pod.never_charged or pod.before_journal:
        return None
    unpaid = _REDIS if pod.cleanup else _ORPHANS if pod.orphan else _BORN
    return pod.job.ref.uid, unpaid.cause


def _names(one: _Survival) -> str:
    names = sorted(ref.name for ref in one.pods.values())
    more = len(names) - 3
    return f"pod{'s' if len(names) > 1 else ''} {', '.join(names[:3])}" + (f" and {more} more" if more > 0 else "")
