"""Whom a pending Workload may preempt, and whether that is enough: an independent model of Kueue's victim choice.

Within a ClusterQueue and, in a cohort without cohorts below it, plain reclaim: from ClusterQueues that use more than
their own, for a Workload that needs no more than its ClusterQueue's own. Candidates are ranked: those already evicted,
then those of other ClusterQueues, then lower priority, then younger reservation. The one promise that is checked is
what follows from that order: no victim is there who could have been spared by taking only candidates ranked before it.

Sources: kueue apis/kueue/v1beta2/clusterqueue_types.go:480-555, pkg/scheduler/preemption/preemption.go:260-350,
common/ordering.go, common/preemption_policy.go, classical/candidate_generator.go,
classical/hierarchical_preemption.go@v0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from raykueue.audit.cohorts import CLUSTER_QUEUE, COHORT, QuotaTree
from raykueue.model.findings import Ref
from raykueue.model.queues import FlavorResource, QuotaSpec

Request: TypeAlias = Mapping[FlavorResource, int]

NEVER = "Never"
_MOST_CANDIDATES = 12
"""So many are tried in all combinations."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a ClusterQueue's Workloads may preempt."""

    within: str = NEVER
    """Never, LowerPriority, LowerOrNewerEqualPriority."""
    reclaim: str = NEVER
    """Never, LowerPriority, Any."""
    unmodelled: str = ""
    """What in its spec this model knows nothing of."""
    stopped: bool = False
    """Not everybody is given quota there, on purpose or because Kueue can't."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A Workload that holds quota, or waits for it. Times are whole seconds since the epoch, as Kubernetes has them."""

    ref: Ref
    cluster_queue: str
    priority: int
    queued: float
    """By which it is ordered among its equals: its creation, or a later eviction."""
    asks: Request
    """What it is charged, or will be."""
    reserved: float = 0.0
    evicted: bool = False

    def __str__(self) -> str:
        return f"{self.ref} (priority {self.priority})"


class Room:
    """Quota and its holders at one revision. Raises CohortCycle where cohorts are their own ancestors."""

    def __init__(
        self,
        queues: Mapping[str, tuple[QuotaSpec, Policy]],
        cohorts: Mapping[str, QuotaSpec],
        holders: Iterable[Contender],
    ) -> None:
        self.holders = {one.ref.uid: one for one in holders}
        self._queues = queues
        self._cohorts = cohorts
        self._tree = QuotaTree()
        self._used: dict[tuple[str, FlavorResource], int] = {}
        for name, (spec, _) in queues.items():
            self._tree.define((CLUSTER_QUEUE, name), spec)
        for name, spec in cohorts.items():
            self._tree.define((COHORT, name), spec)
        for one in self.holders.values():
            self._count(one, 1)

    def lacking(self, wants: Contender) -> frozenset[FlavorResource]:
        """Of what there is too little."""
        leaf = (CLUSTER_QUEUE, wants.cluster_queue)
        return frozenset(key for key, value in wants.asks.items() if value > self._tree.available(leaf, key))

    def may(self, wants: Contender, victim: Contender, keys: frozenset[FlavorResource]) -> str:
        """Why it may not preempt that one, in words; empty if it may."""
        policy = self._queues[wants.cluster_queue][1]
        own = victim.cluster_queue == wants.cluster_queue
        which, rule = ("withinClusterQueue", policy.within) if own else ("reclaimWithinCohort", policy.reclaim)
        if not own and not self._related(wants.cluster_queue, victim.cluster_queue):
            return f"{victim} is in no cohort with ClusterQueue {wants.cluster_queue}"
        if rule == NEVER:
            return f"{victim} was preempted although {which} is Never"
        if not keys & victim.asks.keys():
            return f"{victim} uses nothing of what was lacking"
        lower = victim.priority < wants.priority
        newer = victim.priority == wants.priority and wants.queued < victim.queued
        if not (lower or rule == "Any" or (rule == "LowerOrNewerEqualPriority" and newer)):
            return f"{victim} is not below priority {wants.priority}, as {which}: {rule} wants it"
        if not own and not self._over_nominal(victim.cluster_queue, keys):
            return f"{victim} is in ClusterQueue {victim.cluster_queue}, which used no more than its own quota"
        return ""

    def candidates(self, wants: Contender, keys: frozenset[FlavorResource], *, borrowing: bool) -> list[Contender]:
        """All that it may preempt, in order. A Workload that would borrow takes nothing from other ClusterQueues."""
        own_quota = not borrowing or self.within_nominal(wants)
        allowed = [v for v in self.holders.values() if v.ref.uid != wants.ref.uid and not self.may(wants, v, keys)]
        return sorted(
            (v for v in allowed if own_quota or v.cluster_queue == wants.cluster_queue),
            key=lambda v: (*rank(wants, v), v.ref.uid),
        )

    def within_nominal(self, wants: Contender) -> bool:
        """With it, its ClusterQueue would use no more than its own."""
        spec = self._queues[wants.cluster_queue][0]
        return all(
            self._used.get((wants.cluster_queue, key), 0) + value <= spec.quotas[key].nominal
            for key, value in wants.asks.items()
            if key in spec.quotas
        )

    def fits(self, wants: Contender, without: Iterable[Contender], *, borrowing: bool) -> bool:
        """There is room for it once these are gone; without `borrowing`: in its ClusterQueue's own quota."""
        removed = list(without)
        self._move(removed, -1)
        enough = not self.lacking(wants) and (borrowing or self.within_nominal(wants))
        self._move(removed, 1)
        return enough

    def valid(self, wants: Contender, ordered: Iterable[Contender], keys: frozenset[FlavorResource]) -> list[Contender]:
        """Those that may still be taken when all valid ones before them are gone: who borrows gives back no more."""
        taken: list[Contender] = []
        for one in ordered:
            if one.cluster_queue == wants.cluster_queue or self._over_nominal(one.cluster_queue, keys):
                taken.append(one)
                self._count(one, -1)
        self._move(taken, 1)
        return taken

    def smallest(self, wants: Contender, among: list[Contender], below: int, *, borrowing: bool) -> list[Contender]:
        """A set of fewer than `below` that is enough; empty if there is none, or there are too many to try."""
        if len(among) <= _MOST_CANDIDATES:
            for size in range(1, below):
                for some in combinations(among, size):
                    if self.fits(wants, some, borrowing=borrowing):
                        return list(some)
        return []

    def attempts(self, wants: Contender, keys: frozenset[FlavorResource]) -> tuple[bool, ...]:
        """With borrowing; and without, if its ClusterQueue uses less than its own of all that is lacking."""
        quotas = self._queues[wants.cluster_queue][0].quotas
        used = {key: self._used.get((wants.cluster_queue, key), 0) for key in keys}
        under = all(key in quotas and used[key] < quotas[key].nominal for key in keys)
        return (True, False) if under else (True,)

    def unmodelled(self, cluster_queue: str) -> str:
        """What about the ClusterQueue this model knows nothing of; empty if nothing."""
        spec, policy = self._queues[cluster_queue]
        above = self._cohorts.get(spec.parent)
        if (above and above.parent) or (spec.parent and any(c.parent == spec.parent for c in self._cohorts.values())):
            return "its cohort is one of a hierarchy"
        return policy.unmodelled

    def stopped(self, cluster_queue: str) -> bool:
        """Not everybody is given quota there."""
        return self._queues[cluster_queue][1].stopped

    def _related(self, one: str, other: str) -> bool:
        parent = self._queues[one][0].parent
        return bool(parent) and other in self._queues and self._queues[other][0].parent == parent

    def _over_nominal(self, name: str, keys: frozenset[FlavorResource]) -> bool:
        quotas = self._queues[name][0].quotas if name in self._queues else {}
        return any(self._used.get((name, key), 0) > (quotas[key].nominal if key in quotas else 0) for key in keys)

    def _move(self, some: Iterable[Contender], sign: int) -> None:
        for one in some:
            self._count(one, sign)

    def _count(self, one: Contender, sign: int) -> None:
        for key, value in one.asks.items():
            self._tree.add(one.cluster_queue, key, sign * value)
            place = (one.cluster_queue, key)
            self._used[place] = self._used.get(place, 0) + sign * value


def rank(wants: Contender, victim: Contender) -> tuple[bool, bool, int, float]:
    """The less, the sooner it is taken. Equal for those whose reservations are of the same second."""
    return not victim.evicted, victim.cluster_queue == wants.cluster_queue, victim.priority, -victim.reserved


def faults(room: Room, wants: Contender, victims: list[Contender]) -> Iterator[str]:
    """What was wrong about a choice of victims, in words; nothing if it was right. Raises CohortCycle."""
    keys = room.lacking(wants)
    if not keys:
        yield "nothing had to be preempted: there was room"
        return
    illegal = [why for victim in victims if (why := room.may(wants, victim, keys))]
    yield from illegal
    if not illegal:
        attempts = [list(_attempt(room, wants, victims, keys, borrowing=b)) for b in room.attempts(wants, keys)]
        yield from min(attempts, key=len)


def remarks(room: Room, wants: Contender, victims: list[Contender]) -> Iterator[str]:
    """What is worth telling about a choice that was right: fewer would have done, but higher ones."""
    keys = room.lacking(wants)
    among = [v for v in room.candidates(wants, keys, borrowing=True) if not v.evicted or v in victims]
    fewer = room.smallest(wants, among, len(victims), borrowing=True)
    if fewer:
        yield f"fewer would have been enough, but of higher rank: {_names(fewer)}"


def _attempt(
    room: Room, wants: Contender, victims: list[Contender], keys: frozenset[FlavorResource], *, borrowing: bool
) -> Iterator[str]:
    ranked = room.candidates(wants, keys, borrowing=borrowing)
    chosen = {v.ref.uid for v in victims}
    gone = [v for v in ranked if v.evicted or v.ref.uid in chosen]
    for victim in victims:
        if victim not in ranked:
            yield f"{victim} was reclaimed for a Workload that its own ClusterQueue's quota does not cover"
    valid = room.valid(wants, gone, keys)
    for victim in (v for v in gone if v not in valid and v.ref.uid in chosen):
        yield f"{victim} is in ClusterQueue {victim.cluster_queue}, which had given back by then all that it borrowed"
    if not room.fits(wants, valid, borrowing=borrowing):
        yield "the victims' quota together is not enough for it"
        return
    for victim in (v for v in victims if v in valid):
        if room.fits(wants, [v for v in valid if v is not victim], borrowing=borrowing):
            yield f"{victim} was preempted for nothing: the others were enough"
            continue
        before = room.valid(wants, [v for v in ranked if rank(wants, v) < rank(wants, victim)], keys)
        others = [v for v in valid if v is not victim and v not in before]
        if room.fits(wants, [*before, *others], borrowing=borrowing):
            instead = [v for v in before if v not in valid]
            yield f"{victim} was preempted although a lower set was enough, with {_names(instead)} instead"


def blocked(room: Room, wants: Contender) -> list[Contender]:
    """The lower ones that it could preempt and that keep it out; none if there is room, or room is being made."""
    keys = room.lacking(wants)
    leaving = [v for v in room.holders.values() if v.evicted]
    if not keys or room.fits(wants, leaving, borrowing=True):
        return []
    for borrowing in room.attempts(wants, keys):
        ranked = room.candidates(wants, keys, borrowing=borrowing)
        lower = [v for v in ranked if v.priority < wants.priority and not v.evicted]
        some = room.valid(wants, lower, keys)
        if some and room.fits(wants, [*leaving, *some], borrowing=borrowing):
            return some
    return []


def _names(some: Iterable[Contender]) -> str:
    return ", ".join(str(one) for one in some)
