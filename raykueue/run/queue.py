"""The handle of one queue: a ClusterQueue with its LocalQueue, and what Kueue says of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from raykueue.audit.thresholds import Thresholds
from raykueue.errors import InfraError, UsageError, WaitFailed
from raykueue.model.events import Object
from raykueue.model.queues import Booked, Entry, FlavorResource, booked, quota_spec
from raykueue.model.views import condition, name, status, uid
from raykueue.model.workloads import QUOTA_RESERVED, charge, holds, set_aside
from raykueue.run.feed import Feed
from raykueue.run.resources import Resources, over_all_flavors
from raykueue.run.timeouts import DEFAULT, Timeouts

IDLE_SECONDS = Thresholds().workload + 1.0
"""Longer than quota may be held by a job that KubeRay has found invalid."""
UNTOLD_SECONDS = Thresholds().idle + 1.0
"""Longer than it may be held by a job that never makes a pod, whatever the reason."""
_COUNTS = ("pending", "reserving", "admitted")


@dataclass(frozen=True, slots=True)
class Queue:
    """One ClusterQueue with the LocalQueue that leads to it."""

    feed: Feed
    name: str
    """Of the ClusterQueue, in this scope."""
    local: str
    """Of the LocalQueue: what a job's label names."""
    namespace: str
    timeouts: Timeouts = DEFAULT

    @property
    def booked(self) -> Resources:
        """What Kueue says is used (`flavorsUsage`), once it has had its time to publish."""
        return self._published(lambda books: _sum(books.usage), admitted=True)

    @property
    def reserved(self) -> Resources:
        """What Kueue says is reserved (`flavorsReservation`), once it has had its time to publish."""
        return self._published(lambda books: _sum(books.reservation), admitted=False)

    @property
    def quota(self) -> Resources:
        """Nominal quota, over all flavors."""
        quotas = quota_spec(self._object()).quotas
        return over_all_flavors({flavor: quota.nominal for flavor, quota in quotas.items()})

    @property
    def charged(self) -> Resources:
        """What all Workloads in this queue are charged now."""
        return self._charged(self.feed, admitted=False)

    @property
    def peak_booked(self) -> Resources:
        """The most that Kueue ever said is used or reserved, per resource."""
        peak = Resources()
        for event in self.feed.events:
            if event.kind == "ClusterQueue" and event.object["metadata"]["name"] == self.name:
                books = booked(event.object)
                for entries in (books.usage, books.reservation):
                    peak = peak.largest(_sum(entries))
        return peak

    @property
    def peak_charged(self) -> Resources:
        """The most that Workloads in this queue were charged at any revision, per resource."""
        peak, held = Resources(), dict[str, Resources]()
        workloads = (event for event in self.feed.events if event.kind == "Workload")
        for event in sorted(workloads, key=lambda event: event.rev):
            one = charge(event.object) if event.type != "DELETED" and holds(event.object) else None
            mine = one is not None and one.cluster_queue == self.name
            held[uid(event.object)] = over_all_flavors(one.totals) if one is not None and mine else Resources()
            peak = peak.largest(sum(held.values(), Resources()))
        return peak

    def counts(self, **expected: int) -> dict[str, int]:
        """Pending, reserving and admitted Workloads as Kueue counts them: `expected` once it says so, else the last.

        Raises:
            UsageError: `expected` has anything else.
        """
        if unknown := sorted(set(expected) - set(_COUNTS)):
            raise UsageError(f"Kueue does not count {', '.join(unknown)}; it counts {', '.join(_COUNTS)}")

        def read() -> dict[str, int]:
            about = status(self._object())
            return {name: int(about.get(f"{name}Workloads", 0)) for name in _COUNTS}

        def look(_: Feed) -> bool | None:
            return True if all(read()[name] == count for name, count in expected.items()) else None

        self._wait(look)
        return read()

    def until_active(self) -> Queue:
        """Waits until Kueue would admit to it.

        Raises:
            InfraError: it doesn't become active.
        """

        def look(feed: Feed) -> bool | None:
            found = feed.object("ClusterQueue", "", self.name)
            active = condition(found, "Active") if found is not None else None
            return True if active is not None and active["status"] == "True" else None

        if not self._wait(look, self.timeouts.state):
            found = self.feed.object("ClusterQueue", "", self.name)
            seen = condition(found, "Active") if found is not None else None
            raise InfraError(f"ClusterQueue {self.name}: expected to become Active, last seen {seen}; see Kueue's log")
        return self

    def until_set_aside(self) -> Queue:
        """Waits until Kueue has set aside every Workload that it was given: none holds quota, and none will.

        Raises:
            WaitFailed: one still holds quota, or may be admitted yet.
        """

        def look(feed: Feed) -> bool | None:
            return True if all(set_aside(workload) for workload in feed.objects("Workload")) else None

        if not self._wait(look, self.timeouts.state):
            left = [workload for workload in self.feed.objects("Workload") if not set_aside(workload)]
            seen = "; ".join(f"Workload {name(one)}: {condition(one, QUOTA_RESERVED) or 'pending'}" for one in left)
            raise WaitFailed(
                f"ClusterQueue {self.name}: expected that Kueue sets aside all it was given, last seen {seen}"
            )
        return self

    def outlast_idle_quota(self, seconds: float = IDLE_SECONDS) -> Queue:
        """Waits until every Workload that holds quota has held it for so long, or none has begun to for so long.

        Whether it is held for nothing is then for the ledger to say, which lets that be until then
        (`released-in-time`).
        """
        known: frozenset[str] = frozenset()

        def look(feed: Feed) -> frozenset[str] | None:
            holding = frozenset(uid(workload) for workload in feed.objects("Workload") if holds(workload))
            return holding if holding - known else None

        while True:
            try:
                known |= self.feed.wait(look, time.monotonic() + seconds)
            except TimeoutError:
                return self

    def _published(self, read: Callable[[Booked], Resources], *, admitted: bool) -> Resources:
        def look(feed: Feed) -> bool | None:
            books = read(booked(self._object()))
            return True if books == self._charged(feed, admitted=admitted) else None

        self._wait(look)
        return read(booked(self._object()))

    def _charged(self, feed: Feed, *, admitted: bool) -> Resources:
        held = [charge(workload) for workload in feed.objects("Workload") if holds(workload)]
        mine = [one for one in held if one.cluster_queue == self.name and (one.admitted or not admitted)]
        return sum((over_all_flavors(one.totals) for one in mine), Resources())

    def _object(self) -> Object:
        found = self.feed.object("ClusterQueue", "", self.name)
        if found is None:
            raise InfraError(f"ClusterQueue {self.name} is not there (any more)")
        return found

    def _wait(self, look: Callable[[Feed], bool | None], seconds: float | None = None) -> bool:
        try:
            self.feed.wait(look, time.monotonic() + (self.timeouts.books if seconds is None else seconds))
        except TimeoutError:
            return False
        return True


def _sum(entries: Mapping[FlavorResource, Entry]) -> Resources:
    return over_all_flavors({flavor: entry.total for flavor, entry in entries.items()})
