"""Judges a journal that is over, without a cluster: the same fold, with the whole journal at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from raykueue.audit.books.changes import Change
from raykueue.audit.books.fold import Books
from raykueue.audit.ledger import Ledger
from raykueue.audit.order import Order, place
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Barrier, Event, Header, Marker, Moment, Record


@dataclass(frozen=True, slots=True)
class Step:
    """One event or marker, as it was folded."""

    moment: Moment
    item: Event | Marker
    changes: tuple[Change, ...]
    books: Books
    """As they are after it; the same object at every step."""


def replay(records: Iterable[Record], thresholds: Thresholds | None = None, until: Barrier | None = None) -> Ledger:
    """Folds a journal, barrier by barrier as it was folded live, and returns its ledger.

    Thresholds and pair are those of the header; `thresholds` overrules it. With `until`, it stands as it did at that
    barrier; otherwise everything is folded, also what came after the last one. Raises ValueError if the journal has no
    header, or not that barrier.
    """
    listed = list(records)
    if not listed or not isinstance(listed[0], Header):
        raise ValueError("a journal begins with a header, which says the pair and the thresholds; this one does not")
    header = listed[0]
    ledger = Ledger(thresholds or Thresholds.from_settings(header.settings), header.pair)
    for record in _up_to(listed, until):
        if isinstance(record, Barrier):
            ledger.fold(record)
        else:
            ledger.add(record)
    return ledger


def steps(
    records: Iterable[Record], until: Barrier | None = None, over: Callable[[Moment], bool] = lambda _: False
) -> Iterator[Step]:
    """The same fold, one event after the other, without rules: for whoever wants to see the books in between.

    Each step changes the books, and what is in them. So to keep them as they are at some time, end there: before the
    first event that is `over`.
    """
    order, books = Order(), Books()
    for record in _up_to(list(records), until):
        if isinstance(record, Event):
            books.identities.learn(record)
            order.add(record)
        elif isinstance(record, Marker):
            order.mark(record)
        elif isinstance(record, Barrier):
            for moment, item in order.take(record).items:
                if over(moment):
                    return
                changes = books.apply(item, moment) if isinstance(item, Event) else ()
                yield Step(moment, item, tuple(changes), books)


def _up_to(records: list[Record], until: Barrier | None) -> Iterator[Record]:
    """Up to a barrier; or all of them, and one barrier more at the end."""
    for record in records:
        yield record
        if until is not None and isinstance(record, Barrier) and _same(record, until):
            return
    if until is not None:
        raise ValueError(f"the journal has no barrier at revision {until.rev}; is it cut short?")
    revs = [place(r) if isinstance(r, Event) else r.rev for r in records if isinstance(r, Event | Barrier)]
    yield Barrier(max(revs, default=0), max((record.arrived for record in records), default=0))


def _same(one: Barrier, other: Barrier) -> bool:
    return (one.rev, one.arrived) == (other.rev, other.arrived)
