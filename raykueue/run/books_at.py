"""The books at one moment of a journal: what is there, booked, charged, asked; who holds quota, who pays for whom."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from raykueue.audit.books.entities import Hold, Pod
from raykueue.audit.levels import Key, Level, Levels
from raykueue.audit.replay import steps
from raykueue.errors import UsageError
from raykueue.model.events import Event, Moment, Record

_OFFSET = re.compile(r"\+(\d+(?:\.\d+)?)s?")


@dataclass(frozen=True, slots=True)
class BooksAt:
    """Everything known at one moment; lists are in order of name."""

    moment: Moment
    """Of the last event that is in."""
    offset: float
    """Seconds from the journal's first event to it."""
    folded: int
    events: int
    """How many of how many events are in."""
    levels: tuple[tuple[Key, Level], ...]
    holds: tuple[Hold, ...]
    """The open ones."""
    pods: tuple[Pod, ...]


def books_at(records: Iterable[Record], when: str) -> BooksAt:
    """Folds a journal up to a moment.

    Args:
        when: a revision (`916`), a time since the first event (`+12.5s`), or an ISO time (UTC unless it says so).

    Raises:
        UsageError: it is none of these, or it lies before the journal's first event.
    """
    listed = list(records)
    events = [record for record in listed if isinstance(record, Event)]
    if not events:
        raise UsageError("the journal has no events, so there are no books at any time")
    began = min(event.arrived if event.t is None else event.t for event in events)
    rev, t = _parse(when, began)
    levels, last, folded = Levels(), Moment(0, 0), 0
    for step in steps(listed, over=lambda moment: _after(moment, rev, t)):
        for change in step.changes:
            levels.see(change)
        if isinstance(step.item, Event):
            last, folded = step.moment, folded + 1
    if not folded:
        raise UsageError(
            f"{when} lies before the journal's first event, at revision {min(e.rev for e in events)}, {iso(began)}"
        )
    return BooksAt(
        last,
        (last.t - began) / 1e9,
        folded,
        len(events),
        tuple((key, levels.at(key)) for key in levels.keys()),  # noqa: SIM118 - it is no mapping
        tuple(sorted(levels.holds.values(), key=lambda hold: (str(hold.ref), hold.n))),
        tuple(sorted(levels.pods.values(), key=lambda pod: str(pod.ref))),
    )


def iso(t: int) -> str:
    """Nanoseconds since the epoch as UTC, to the millisecond."""
    return f"{datetime.fromtimestamp(t / 1e9, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"


def _parse(when: str, began: int) -> tuple[int | None, int | None]:
    """(revision, None) or (None, nanoseconds since the epoch)."""
    if when.isdigit():
        return int(when), None
    if offset := _OFFSET.fullmatch(when):
        return None, began + round(float(offset[1]) * 1e9)
    try:
        read = datetime.fromisoformat(when)
    except ValueError:
        raise UsageError(
            f"{when!r} is no moment: write a revision (916), a time since the first event (+12.5s), or an ISO time "
            f"({iso(began)})"
        ) from None
    aware = read if read.tzinfo else read.replace(tzinfo=UTC)
    return None, round(aware.timestamp() * 1e6) * 1000


def _after(moment: Moment, rev: int | None, t: int | None) -> bool:
    return (rev is not None and moment.rev > rev) or (t is not None and moment.t > t)
