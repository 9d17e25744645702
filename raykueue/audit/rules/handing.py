"""One hand-over while it goes on: who gave, who got, and what both use at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from raykueue.audit.books.entities import Hold, Job
from raykueue.audit.books.usage import Party, UsageBook
from raykueue.audit.cohorts import CLUSTER_QUEUE, CohortCycle
from raykueue.audit.handovers import Donor, HandOver
from raykueue.audit.windows import Window
from raykueue.model.events import Moment
from raykueue.model.findings import Ref
from raykueue.model.queues import FlavorResource

_BOUND, _RUNNING = "bound", "running"


@dataclass(slots=True, eq=False)
class Giver:
    """One donor."""

    key: str
    """The payer, or the job's UID if its pods were born after its release."""
    job: Job
    hold: Hold
    paid: bool
    gone: Moment | None = None

    @property
    def payer(self) -> str:
        return self.hold.payer if self.paid else ""


@dataclass(slots=True, eq=False)
class Overlap:
    """One time in which old and new pods used more than the quota, without interruption."""

    window: Window
    both: Window
    """Of 1 each: both sides had a pod on a node, and one that ran."""


@dataclass(slots=True, eq=False)
class Handing:
    """Of the flavors' resources in `debt`: what would not have fitted, had the survivors still been charged."""

    heir: Hold
    job: Ref
    cluster_queue: str
    debt: Mapping[FlavorResource, int]
    givers: list[Giver]
    first_pod: Moment | None = None
    overlaps: list[Overlap] = field(default_factory=list)

    @classmethod
    def of(cls, heir: Hold, job: Ref, usage: UsageBook) -> Handing | None:
        """What the hold that just began took from survivors; None: it would have fitted beside them."""
        name = heir.charge.cluster_queue
        root = usage.root(name)
        if root is None:
            return None
        short = {key: -usage.unreleased.available((CLUSTER_QUEUE, name), key) for key in heir.charge.totals}
        short = {key: value for key, value in short.items() if value > 0}
        survivors = usage.survivors(root) if short else []
        donors = [party for party in survivors if any(_asked([party], key) for key in short)]
        debt = {key: min(value, _asked(donors, key)) for key, value in short.items()}
        debt = {key: value for key, value in debt.items() if value > 0}
        givers = [Giver(party.key, party.job, party.hold, party.key == party.hold.payer) for party in donors]
        return cls(heir, job, name, debt, givers) if debt else None

    @property
    def over(self) -> bool:
        """Nothing can overlap any more."""
        return all(giver.gone for giver in self.givers) and (self.first_pod is not None or self.heir.end is not None)

    @property
    def last(self) -> Giver:
        """The donor whose pods lasted longest, or last still."""
        return max(self.givers, key=lambda giver: (giver.gone is None, giver.gone.rev if giver.gone else 0, giver.key))

    def settle(self, usage: UsageBook, moment: Moment) -> None:
        """Something in its quota tree changed."""
        new = usage.party(self.heir.payer)
        if new is not None and self.first_pod is None:
            self.first_pod = moment
        old: list[Party] = []
        for giver in self.givers:
            party = usage.party(giver.key) if giver.gone is None else None
            if party is not None:
                old.append(party)
            elif giver.gone is None:
                giver.gone = moment
        level = self._level(usage, new, old) if new is not None else {}
        if level and not self._open:
            self.overlaps.append(Overlap(Window(moment), Window(moment)))
        if not self._open:
            return
        now = self.overlaps[-1]
        if not level or new is None:
            now.window.close(moment)
            now.both.close(moment)
            return
        now.window.set(moment, level)
        bound, running = any(party.bound for party in old), any(party.running for party in old)
        now.both.set(moment, {_BOUND: int(bound and new.bound > 0), _RUNNING: int(running and new.running > 0)})

    def told(self, now: int) -> HandOver:
        """As it stands at `now` (ns)."""
        peak: dict[str, int] = {}
        spent: dict[str, float] = {}
        for one in self.overlaps:
            for resource, value in one.window.peak.items():
                peak[resource] = max(peak.get(resource, 0), value)
            for resource, seconds in one.window.resource_seconds(now).items():
                spent[resource] = spent.get(resource, 0.0) + seconds
        debt: dict[str, int] = {}
        for (_, resource), value in self.debt.items():
            debt[resource] = debt.get(resource, 0) + value
        return HandOver(
            cluster_queue=self.cluster_queue,
            job=self.job,
            workload=self.heir.ref,
            payer=self.heir.payer,
            donors=tuple(_donor(giver) for giver in self.givers),
            debt=debt,
            gained=self.heir.begin,
            first_pod=self.first_pod,
            peak=peak,
            resource_seconds=spent,
            overlap_ms=sum(one.window.seconds(now) for one in self.overlaps) * 1e3,
            bound_ms=sum(bound_seconds(one, now) for one in self.overlaps) * 1e3,
            running_ms=sum(running_seconds(one, now) for one in self.overlaps) * 1e3,
        )

    @property
    def _open(self) -> bool:
        return bool(self.overlaps) and self.overlaps[-1].window.end is None

    def _level(self, usage: UsageBook, new: Party, old: list[Party]) -> dict[str, int]:
        level: dict[str, int] = {}
        for key in self.debt:
            asked = min(_asked([new], key), _asked(old, key))
            asked = min(asked, self._beyond(usage, key)) if asked else 0
            if asked > 0:
                level[key[1]] = level.get(key[1], 0) + asked
        return level

    def _beyond(self, usage: UsageBook, key: FlavorResource) -> int:
        try:
            return -usage.demand.available((CLUSTER_QUEUE, self.cluster_queue), key)
        except CohortCycle:
            return 0


def bound_seconds(one: Overlap, now: int) -> float:
    """How long both sides had a pod on a node."""
    return one.both.resource_seconds(now).get(_BOUND, 0.0)


def running_seconds(one: Overlap, now: int) -> float:
    """How long both sides had a pod that ran."""
    return one.both.resource_seconds(now).get(_RUNNING, 0.0)


def _asked(parties: list[Party], key: FlavorResource) -> int:
    return sum(value for party in parties for (_, at), value in party.demand.items() if at == key)


def _donor(giver: Giver) -> Donor:
    released = giver.hold.end or giver.hold.begin
    return Donor(giver.job.ref, giver.hold.ref, giver.payer, released, giver.gone)
