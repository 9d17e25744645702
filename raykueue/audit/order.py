"""From order of arrival to order of revision, with the time by which each revision had been written.

Streams of different kinds overtake each other, so the audit folds by revision. A barrier proves that every kind is
complete up to its revision; everything up to it is sorted and handed out, the rest waits. t*(r), the smallest arrival
of any event with a revision >= r, is an upper bound of the time of write and never decreases with r. It is final at
the barrier: whatever arrives later arrived later. A recorder works it out itself (`raykueue.audit.written`); for
records without it, it is worked out here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from raykueue.model.events import Barrier, Event, Marker, Moment

# Of the objects that were there before the journal, owners and quota come first: their revisions say when they were
# changed last, not when they were made.
_FIRST = ("Cohort", "ClusterQueue", "RayJob", "RayCluster", "Job", "Workload")
_RANK = {kind: rank for rank, kind in enumerate(_FIRST)}


@dataclass(frozen=True, slots=True)
class Batch:
    """What one barrier releases."""

    items: tuple[tuple[Moment, Event | Marker], ...]
    """In order; their times never decrease."""
    now: int
    """Up to this time everything is known, in nanoseconds since the epoch."""


class Order:
    """Holds events back until a barrier proves them complete."""

    def __init__(self) -> None:
        self.folded = 0
        """Everything up to this revision was handed out."""
        self._waiting: list[Event] = []
        self._markers: list[Marker] = []
        self._now = 0

    def add(self, event: Event) -> bool:
        """Takes an event; False if it is late: its revision was handed out already, so it cannot be folded in order."""
        if place(event) <= self.folded and not event.listed:
            return False
        self._waiting.append(event)
        return True

    def mark(self, marker: Marker) -> None:
        """Takes a marker: it has no revision, it goes where its time puts it."""
        self._markers.append(marker)

    def take(self, barrier: Barrier) -> Batch:
        """Hands out everything up to the barrier, oldest first."""
        snapshot = self.folded == 0
        self._waiting.sort(key=lambda e: _position(e, snapshot))
        ready = [e for e in self._waiting if place(e) <= barrier.rev]
        tail = [e for e in self._waiting if place(e) > barrier.rev]
        now = min([barrier.arrived, *(e.arrived for e in tail)]) if barrier.now is None else barrier.now
        self._now = max(self._now, now)
        self._waiting = tail
        self.folded = max(self.folded, barrier.rev)
        markers = sorted((m for m in self._markers if m.arrived <= self._now), key=lambda m: m.arrived)
        self._markers = [m for m in self._markers if m.arrived > self._now]
        return Batch(tuple(_merge(_timed(ready, now), markers)), self._now)


def place(event: Event) -> int:
    """The revision that an event is folded at."""
    return event.place or event.rev


def _position(event: Event, snapshot: bool) -> tuple[int, int, int]:
    if snapshot and event.listed:
        return 0, _RANK.get(event.kind, len(_FIRST)), event.rev
    return 1, 0, place(event)


def _timed(events: list[Event], latest: int) -> list[tuple[Moment, Event]]:
    times: list[int] = []
    for event in reversed(events):
        latest = min(latest, event.arrived if event.t is None else event.t)
        times.append(latest)
    return [(Moment(place(event), t), event) for event, t in zip(events, reversed(times), strict=True)]


def _merge(events: list[tuple[Moment, Event]], markers: list[Marker]) -> Iterator[tuple[Moment, Event | Marker]]:
    rev = 0
    waiting = iter(markers)
    marker = next(waiting, None)
    for moment, event in events:
        while marker is not None and marker.arrived < moment.t:
            yield Moment(marker.rev or rev, marker.arrived), marker
            marker = next(waiting, None)
        rev = moment.rev
        yield moment, event
    while marker is not None:
        yield Moment(marker.rev or rev, marker.arrived), marker
        marker = next(waiting, None)
