"""How much there is of each (ClusterQueue, flavor, resource): nominal, booked, charged, demand. Kept change by change.

Demand counts where its payer is, or was, charged: that is whose quota it uses. What nobody pays for counts in the
ClusterQueue that its job asks for, under no flavor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from raykueue.audit.books.changes import Change, HoldChange, ObjectChange, PodChange, QueueChange
from raykueue.audit.books.entities import Hold, Pod, PodState, Queue
from raykueue.model import views
from raykueue.model.quantities import in_units
from raykueue.model.workloads import Charge

Key: TypeAlias = tuple[str, str, str]
"""(ClusterQueue, flavor, resource); the first two may be empty: unknown."""


@dataclass(frozen=True, slots=True)
class Level:
    """Of one key. None: not known, or nothing of that kind."""

    nominal: int | None
    usage: int | None
    """Booked for Workloads that are admitted."""
    reservation: int | None
    """Booked for all Workloads with quota."""
    charged: int
    demand: int


class Levels:
    """Told every change, in order; knows every key at any time."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.holds: dict[str, Hold] = {}
        """The open ones, by payer."""
        self.pods: dict[str, Pod] = {}
        """Those that exist, by UID."""
        self._charged: dict[Key, int] = defaultdict(int)
        self._demand: dict[Key, int] = defaultdict(int)
        self._asked: dict[str, dict[Key, int]] = {}
        self._local: dict[tuple[str, str], str] = {}

    def see(self, change: Change) -> None:
        """One thing changed."""
        match change:
            case QueueChange(name=name, after=None):
                self.queues.pop(name, None)
            case QueueChange(name=name, after=Queue() as queue):
                self.queues[name] = queue
            case HoldChange():
                self._hold(change)
            case PodChange():
                self._pod(change.pod, change.after)
            case ObjectChange(after=dict() as obj) if change.ref.kind == "LocalQueue":
                target = str(views.spec(obj).get("clusterQueue", ""))
                self._local[change.ref.namespace, change.ref.name] = target

    def keys(self) -> list[Key]:
        """Everything with quota, charge or demand."""
        specified = {(name, *key) for name, queue in self.queues.items() for key in queue.spec.quotas}
        used = {key for levels in (self._charged, self._demand) for key, value in levels.items() if value}
        return sorted(specified | used)

    def at(self, key: Key) -> Level:
        """As it is now."""
        name, *rest = key
        flavor_resource = (rest[0], rest[1])
        queue = self.queues.get(name)
        quota = queue.spec.quotas.get(flavor_resource) if queue else None
        said = queue.booked if queue else None
        used = said.usage.get(flavor_resource) if said else None
        reserved = said.reservation.get(flavor_resource) if said else None
        return Level(
            quota.nominal if quota else None,
            used.total if used else None,
            reserved.total if reserved else None,
            self._charged.get(key, 0),
            self._demand.get(key, 0),
        )

    def total(self, queue: str, resource: str) -> Level:
        """Of all flavors of a ClusterQueue together, and of demand under no flavor."""
        levels = [self.at(key) for key in self.keys() if (key[0], key[2]) == (queue, resource)]
        return Level(
            _sum(one.nominal for one in levels),
            _sum(one.usage for one in levels),
            _sum(one.reservation for one in levels),
            sum(one.charged for one in levels),
            sum(one.demand for one in levels),
        )

    def queue_of(self, pod: Pod) -> str:
        """The ClusterQueue whose quota the pod uses; empty if it is not known."""
        payer = pod.state.payer
        if payer is not None:
            return payer.charge.cluster_queue
        if pod.job.object is None:
            return ""
        return self._local.get((pod.ref.namespace, views.queue_name(pod.job.object)), "")

    def _hold(self, change: HoldChange) -> None:
        for charge, sign in ((change.before, -1), (change.after, 1)):
            if charge is not None:
                for key, value in _keyed(charge).items():
                    self._charged[key] += sign * value
        if change.after is None:
            self.holds.pop(change.hold.payer, None)
        else:
            self.holds[change.hold.payer] = change.hold

    def _pod(self, pod: Pod, state: PodState | None) -> None:
        uid = pod.ref.uid
        for key, value in self._asked.pop(uid, {}).items():
            self._demand[key] -= value
        if state is None:
            self.pods.pop(uid, None)
            return
        self.pods[uid] = pod
        self._asked[uid] = dict(self._wants(pod, state))
        for key, value in self._asked[uid].items():
            self._demand[key] += value

    def _wants(self, pod: Pod, state: PodState) -> Iterator[tuple[Key, int]]:
        name = self.queue_of(pod)
        queue = self.queues.get(name)
        flavors = _flavors(state.payer, pod.pod_set, queue)
        for resource, value in state.demand.items():
            if resource in flavors or (queue is not None and resource in queue.spec.covered):
                yield (name, flavors.get(resource, ""), resource), value


def booked(resource: str, level: Level) -> str:
    """What is booked, for people: one number, or usage:reservation where the two differ."""
    usage, reservation = in_units(resource, level.usage), in_units(resource, level.reservation)
    return usage if usage == reservation else f"{usage}:{reservation}"


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _keyed(charge: Charge) -> dict[Key, int]:
    return {(charge.cluster_queue, *key): value for key, value in charge.totals.items()}


def _flavors(payer: Hold | None, pod_set: str, queue: Queue | None) -> Mapping[str, str]:
    """Resource to flavor: as assigned, else that of its resource group."""
    assigned = payer.charge.pod_sets.get(pod_set) if payer else None
    flavors = dict(assigned.flavors) if assigned else {}
    for resources, _ in queue.spec.groups if queue else ():
        known = [flavors[r] for r in sorted(resources) if r in flavors]
        flavors.update({r: known[0] for r in resources if known and r not in flavors})
    return flavors
