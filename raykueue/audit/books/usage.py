"""What is really used of the quota: the demand of pods, where who pays for them is, or was, charged.

Pods of a job that never had quota have no place in it. What other kinds of jobs use is not watched: while they hold
quota, their charge stands for their demand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from raykueue.audit.books.changes import Change, CohortChange, HoldChange, JobChange, PodChange, QueueChange
from raykueue.audit.books.charged import ChargedUse, Use
from raykueue.audit.books.entities import RAY_KINDS, Hold, Job, Pod, PodState, Queue
from raykueue.audit.books.jobs import JobBook
from raykueue.audit.books.pods import PodBook
from raykueue.audit.cohorts import CLUSTER_QUEUE, COHORT, CohortCycle, NodeId, QuotaTree
from raykueue.model.queues import FlavorResource, QuotaSpec
from raykueue.model.workloads import Charge


@dataclass(slots=True, eq=False)
class Party:
    """The live pods that one hold pays for, or paid for until it ended; or that were born while their job had none."""

    key: str
    """The payer, or the job's UID if they were born without one."""
    job: Job
    hold: Hold
    """Which is, or was, charged; the job's last one if they were born without a payer."""
    survivors: bool
    """Nobody pays for them any more."""
    demand: Use = field(default_factory=dict)
    pods: int = 0
    bound: int = 0
    running: int = 0

    @property
    def cluster_queue(self) -> str:
        return self.hold.charge.cluster_queue


@dataclass(frozen=True, slots=True)
class _Share:
    """What one pod adds to its party."""

    key: str
    hold: Hold
    demand: Use
    bound: bool
    running: bool


class UsageBook:
    """Three quota trees and the parties that use them. Costs the depth of a tree per change."""

    def __init__(self, queues: Mapping[str, Queue], jobs: JobBook, pods: PodBook) -> None:
        self._queues = queues
        self._jobs = jobs
        self._pods = pods
        self.demand = QuotaTree()
        """All that is used."""
        self.paid = QuotaTree()
        """What is used of what is charged."""
        self.unreleased = QuotaTree()
        """What is charged, and what survivors use: as if quota were given back only with the last pod."""
        self.touched: dict[str, set[FlavorResource]] = {}
        """ClusterQueues of which anything changed in the last event, with what is used of them differently."""
        self.edited: set[NodeId] = set()
        """Nodes whose quota, or whose children's, was edited in the last event."""
        self._parties: dict[str, Party] = {}
        self._survivors: dict[str, dict[str, Party]] = defaultdict(dict)
        self._shares: dict[str, _Share] = {}
        self._charged = ChargedUse()
        self._paid: dict[str, Use] = {}

    def party(self, key: str) -> Party | None:
        """Of that payer, or of that job's pods without one; None: no pod of it lives."""
        return self._parties.get(key)

    def survivors(self, root: NodeId) -> list[Party]:
        """All in one tree for which nobody pays."""
        return [
            party for name, parties in self._survivors.items() if self.root(name) == root for party in parties.values()
        ]

    def root(self, cluster_queue: str) -> NodeId | None:
        """Of the queue's tree; None: its cohorts form a cycle, so no arithmetic applies."""
        try:
            return self.demand.path(cluster_queue)[-1]
        except CohortCycle:
            return None

    def apply(self, changes: list[Change]) -> None:
        """One event changed this."""
        self.touched.clear()
        self.edited.clear()
        for change in changes:
            match change:
                case PodChange():
                    self._pod(change.pod, change.after)
                case HoldChange():
                    self._hold(change)
                case JobChange():
                    for uid in sorted(change.job.pods):
                        pod = self._pods.get(uid)
                        if pod is not None:
                            self._pod(pod, pod.state)
                case QueueChange():
                    before = change.before.spec if change.before else None
                    self._edit((CLUSTER_QUEUE, change.name), before, change.after.spec if change.after else None)
                case CohortChange():
                    self._edit((COHORT, change.name), change.before, change.after)

    def _edit(self, node: NodeId, before: QuotaSpec | None, after: QuotaSpec | None) -> None:
        if before == after:
            return
        self.edited |= self._above(node)
        for tree in (self.demand, self.paid, self.unreleased):
            tree.define(node, after)
        self.edited |= self._above(node)

    def _above(self, node: NodeId) -> set[NodeId]:
        try:
            return set(self.demand.above(node))
        except CohortCycle:
            return {node}

    def _hold(self, change: HoldChange) -> None:
        hold = change.hold
        job = self._jobs.get(hold.job)
        freed, taken = self._charged.apply(change, job)
        self._add(self.unreleased, freed, -1)
        self._add(self.unreleased, taken, 1)
        if job is None or job.ref.kind not in RAY_KINDS:
            for tree in (self.demand, self.paid):
                self._add(tree, _use(change.before), -1)
                self._add(tree, _use(change.after), 1)
        elif hold.payer in self._parties:
            self._settle(hold.payer)

    def _pod(self, pod: Pod, state: PodState | None) -> None:
        share = self._share(pod, state) if state is not None else None
        last = self._shares.pop(pod.ref.uid, None)
        if share is not None:
            self._shares[pod.ref.uid] = share
        if last is not None and share is not None and (last.key, last.demand) == (share.key, share.demand):
            same = self._parties[share.key]
            same.bound += share.bound - last.bound
            same.running += share.running - last.running
            self.touched.setdefault(same.cluster_queue, set())
            return
        if last is not None:
            self._count(self._parties[last.key], last, -1)
        if share is not None:
            if share.key not in self._parties:
                paid = state is not None and state.payer is not None
                self._parties[share.key] = Party(share.key, pod.job, share.hold, survivors=not paid)
            self._count(self._parties[share.key], share, 1)
        for key in {one.key for one in (last, share) if one is not None}:
            self._settle(key)

    def _share(self, pod: Pod, state: PodState) -> _Share | None:
        hold = state.payer or (None if pod.never_charged else pod.job.latest)
        if hold is None or not pod.job.judged or not state.live or state.gated:
            return None
        charge = hold.charge
        assigned = charge.pod_sets.get(pod.pod_set)
        flavors = assigned.flavors if assigned else _all_flavors(charge)
        queue = self._queues.get(charge.cluster_queue)
        filled = queue.spec.fill(flavors) if queue else flavors
        demand = {
            (charge.cluster_queue, (filled[r], r)): value for r, value in state.demand.items() if value and r in filled
        }
        return _Share(state.payer.payer if state.payer else pod.job.ref.uid, hold, demand, state.bound, state.running)

    def _count(self, party: Party, share: _Share, sign: int) -> None:
        for place, value in share.demand.items():
            party.demand[place] = party.demand.get(place, 0) + sign * value
        party.pods += sign
        party.bound += sign * share.bound
        party.running += sign * share.running
        self.touched.setdefault(party.cluster_queue, set())
        self._add(self.demand, share.demand, sign)
        if party.survivors:
            self._add(self.unreleased, share.demand, sign)

    def _settle(self, key: str) -> None:
        """Brings a party that changed up to date: it may be gone, or its hold may have ended."""
        party = self._parties[key]
        self.touched.setdefault(party.cluster_queue, set())
        ended = party.hold.end is not None
        if ended and not party.survivors:
            party.survivors = True
            self._add(self.unreleased, party.demand, 1)
        if party.survivors:
            self._survivors[party.cluster_queue][key] = party
        if not party.pods:
            del self._parties[key]
            if party.survivors:
                del self._survivors[party.cluster_queue][key]
                if not self._survivors[party.cluster_queue]:
                    del self._survivors[party.cluster_queue]
        self._pay(key)

    def _pay(self, key: str) -> None:
        party = self._parties.get(key)
        paid: Use = {}
        if party is not None and not party.survivors:
            charged = party.hold.charge
            paid = {(queue, at): min(value, charged.totals.get(at, 0)) for (queue, at), value in party.demand.items()}
        before = self._paid.pop(key, {})
        if paid:
            self._paid[key] = paid
        if paid != before:
            self._add(self.paid, before, -1)
            self._add(self.paid, paid, 1)

    def _add(self, tree: QuotaTree, use: Use, sign: int) -> None:
        for (queue, at), value in use.items():
            touched = self.touched.setdefault(queue, set())
            if tree is not self.unreleased:
                touched.add(at)
            tree.add(queue, at, sign * value)


def _all_flavors(charge: Charge) -> dict[str, str]:
    return {resource: flavor for flavor, resource in charge.totals}


def _use(charge: Charge | None) -> Use:
    return {} if charge is None else {(charge.cluster_queue, at): value for at, value in charge.totals.items()}
