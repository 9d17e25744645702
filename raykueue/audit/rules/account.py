"""What the pods of one PodSet of one hold ask, against what it is charged: kept up to date pod by pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from raykueue.audit.books.entities import Hold, Job, Pod, Queue
from raykueue.audit.windows import Window
from raykueue.model.events import Moment
from raykueue.model.findings import Ref
from raykueue.model.quantities import PODS, add, excess, sub
from raykueue.model.workloads import PodSetCharge, template_containers


@dataclass(slots=True, eq=False)
class Excess:
    """One time in which more was asked than charged, for one cause."""

    account: Account
    cause: str
    window: Window
    masked: bool = True
    """So far the hold's total still fitted its charge."""
    most: int = 0
    """Largest number of pods meanwhile."""
    charged_for: int = 0
    pods: dict[str, Ref] = field(default_factory=dict)
    strange: set[str] = field(default_factory=set)
    """Containers that the Workload's template lacks."""


class Account:
    """One PodSet of a hold; or, without a hold, all pods of a job that was never charged.

    An excess is split: what single pods ask above their share is `under-count`, the rest is one of number:
    `extra-pods`, or `scale-down` if the charge was scaled down.
    """

    def __init__(self, job: Job, hold: Hold | None, pod_set: str, queue: Queue | None) -> None:
        self.job = job
        self.hold = hold
        self.pod_set = pod_set
        self.payer = hold.payer if hold else job.ref.uid
        self.namespace = job.ref.namespace
        self.cluster_queue = hold.charge.cluster_queue if hold else ""
        self.total: dict[str, int] = {}
        self.charged: Mapping[str, int] = {}
        self._share: Mapping[str, int] | None = None
        self._covered: frozenset[str] | None = None
        self._flavors: dict[str, str] = {}
        self._above: dict[str, int] = {}
        self._asked: dict[str, tuple[Pod, Mapping[str, int]]] = {}
        self._open: dict[str, Excess] = {}
        self._fresh: list[tuple[Pod, Mapping[str, int]]] = []
        self.recharge(queue)

    def pods(self) -> list[str]:
        return list(self._asked)

    def flavor(self, resource: str) -> str:
        """The flavor of a resource: assigned, else that of its resource group in this PodSet, else unknown."""
        return self._flavors.get(resource, "")

    def recharge(self, queue: Queue | None) -> None:
        """The charge, or what the ClusterQueue covers, changed."""
        charge = self._charge()
        self.charged = charge.amounts if charge else {}
        self._share = charge.per_pod if charge and charge.count else None
        flavors = charge.flavors if charge else {}
        self._flavors = queue.spec.fill(flavors) if queue else dict(flavors)
        if self.hold is not None:
            self.cluster_queue = self.hold.charge.cluster_queue
            self._covered = queue.spec.covered if queue else frozenset(self._flavors)
        asked, self._asked, self.total, self._above = self._asked, {}, {}, {}
        for pod, demand in asked.values():
            self.put(pod, demand)

    def asks(self, pod: Pod, demand: Mapping[str, int]) -> bool:
        """The pod is known to ask just that: to `put` it again would change nothing."""
        known = self._asked.get(pod.ref.uid)
        return known is not None and known[1] == demand

    def put(self, pod: Pod, demand: Mapping[str, int]) -> None:
        """The pod asks this from now on; nothing if empty."""
        _, before = self._asked.pop(pod.ref.uid, (pod, {}))
        if demand:
            self._asked[pod.ref.uid] = (pod, demand)
            self._fresh.append((pod, demand))
        self.total = _grow(self.total, self._counted(before), self._counted(demand))
        self._above = _grow(self._above, self._beyond(before), self._beyond(demand))

    def settle(self, moment: Moment) -> list[Excess]:
        """Opens, moves and closes windows after a change; returns the new ones."""
        new: list[Excess] = []
        levels = self._levels()
        for cause in [c for c in self._open if c not in levels]:
            self._open.pop(cause).window.close(moment)
        for cause, level in levels.items():
            if cause not in self._open:
                window = Window(moment)
                self._open[cause] = Excess(self, cause, window)
                new.append(self._open[cause])
                self._describe(self._open[cause], self._asked.values())
            self._open[cause].window.set(moment, level)
            self._describe(self._open[cause], self._fresh)
        self._fresh = []
        return new

    def unmask(self, siblings: Iterable[Account]) -> None:
        """An excess that the hold's total does not hide is not masked."""
        for one in self._open.values():
            one.masked = one.masked and all(self._hidden(r, siblings) for r in self._levels().get(one.cause, {}))

    def close(self, moment: Moment) -> None:
        """The hold ended: what is left is another rule's."""
        for one in self._open.values():
            one.window.close(moment)
        self._open = {}

    def _levels(self) -> dict[str, dict[str, int]]:
        beyond = excess(self.total, self.charged)
        if not beyond:
            return {}
        if self.hold is None:
            return {"never-charged": beyond}
        own = {r: min(value, self._above.get(r, 0)) for r, value in beyond.items()}
        own = {r: value for r, value in own.items() if value}
        rest = excess(beyond, own)
        charge = self._charge()
        number = "scale-down" if charge and charge.left < charge.count else "extra-pods"
        return {cause: level for cause, level in (("under-count", own), (number, rest)) if level}

    def _hidden(self, resource: str, siblings: Iterable[Account]) -> bool:
        alike = [s for s in siblings if s.flavor(resource) == self.flavor(resource)]
        spare = sum(s.charged.get(resource, 0) - s.total.get(resource, 0) for s in alike)
        seen = {s.pod_set for s in alike}
        absent = self.hold.charge.pod_sets.values() if self.hold else ()
        spare += sum(
            c.amounts.get(resource, 0)
            for c in absent
            if c.name not in seen and c.flavors.get(resource) == self.flavor(resource)
        )
        return spare >= 0 and self.hold is not None

    def _charge(self) -> PodSetCharge | None:
        return self.hold.charge.pod_sets.get(self.pod_set) if self.hold else None

    def _counted(self, demand: Mapping[str, int]) -> dict[str, int]:
        if self._covered is None:
            return {r: value for r, value in demand.items() if r != PODS}
        return {r: value for r, value in demand.items() if r in self._covered}

    def _beyond(self, demand: Mapping[str, int]) -> dict[str, int]:
        """What one pod asks above its share; nothing if the PodSet is charged for no pod at all."""
        if self._share is None:
            return {}
        return excess(self._counted(demand), self._share)

    def _describe(self, one: Excess, added: Iterable[tuple[Pod, Mapping[str, int]]]) -> None:
        charge = self._charge()
        one.most = max(one.most, len(self._asked))
        one.charged_for = charge.left if charge else 0
        known = template_containers(self.hold.workload, self.pod_set) if self.hold else frozenset()
        for pod, demand in added:
            if one.cause != "under-count" or self._beyond(demand):
                one.pods[pod.ref.uid] = pod.ref
                if one.cause == "under-count":
                    one.strange |= pod.containers - known


def _grow(total: Mapping[str, int], minus: Mapping[str, int], plus: Mapping[str, int]) -> dict[str, int]:
    return {r: value for r, value in add(sub(total, minus), plus).items() if value}
