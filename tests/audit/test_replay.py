from __future__ import annotations

import pytest

from raykueue.audit.ledger import Ledger
from raykueue.audit.replay import replay, steps
from raykueue.model.events import Barrier, Event, Header, Marker, Record
from raykueue.model.findings import Finding
from tests.audit.journals import EPOCH, PAIR, Journal


def too_much(ledger: Ledger) -> list[Finding]:
    return [f for f in ledger.unscoped([]) if f.rule == "pods-covered"]


def recorded(*, barriers: bool = True) -> tuple[Journal, list[Record], list[Barrier]]:
    """A pod too many from 0 s on, and a second one from 10 s on, each with a barrier behind it."""
    j = Journal()
    a = j.at(0).job("a", j.queue())
    a.workload.admit()
    a.pod("head", cpu=2)
    first = Barrier(j.rev, EPOCH + 5 * 10**9)
    before = list(j.records)
    j.at(10)
    a.pod("workers", cpu=2)
    second = Barrier(j.rev, EPOCH + 15 * 10**9)
    after = j.records[len(before) :]
    middle = [first] if barriers else []
    return j, [Header(EPOCH, pair=PAIR), *before, *middle, *after, second], [first, second]


def test_a_replay_stands_as_it_did_at_a_barrier() -> None:
    _, records, (first, second) = recorded()
    assert [f.seconds for f in too_much(replay(records, until=first))] == [(5.0, 5.0)]
    assert [f.seconds for f in too_much(replay(records, until=second))] == [(15.0, 15.0), (5.0, 5.0)]
    with pytest.raises(ValueError, match="no barrier at revision 9999"):
        replay(records, until=Barrier(9999, 1))


def test_barriers_in_between_change_nothing() -> None:
    _, with_barriers, _ = recorded()
    _, without, _ = recorded(barriers=False)
    assert replay(with_barriers).unscoped([]) == replay(without).unscoped([])


def test_what_came_after_the_last_barrier_is_folded_too() -> None:
    _, records, _ = recorded()
    assert len(too_much(replay(records[:-1]))) == 2


def test_an_event_that_came_too_late_live_is_too_late_in_a_replay() -> None:
    j, records, _ = recorded()
    late = next(record for record in records if isinstance(record, Event))
    ledger = replay([*records, late])
    assert [p.kind for p in ledger._books.problems] == ["late"]
    placed = Event(late.kind, late.type, late.rev, EPOCH + 16 * 10**9, late.object, place=j.rev + 1)
    assert replay([*records, placed])._books.problems == []


def test_steps_are_the_events_and_markers_in_the_order_of_the_fold() -> None:
    j, records, (first, _) = recorded()
    records.insert(2, Marker("kueue-down", EPOCH + 3 * 10**9))
    walked = [(step.moment.rev, type(step.item).__name__) for step in steps(records)]
    assert walked == [*((rev, "Event") for rev in range(101, first.rev + 1)), (first.rev, "Marker")] + [
        (rev, "Event") for rev in range(first.rev + 1, j.rev + 1)
    ]
    begun = list(steps(records, over=lambda moment: moment.rev > 102))
    assert [step.moment.rev for step in begun] == [101, 102]
    assert [len(list(step.books.jobs())) for step in steps(records, first)][-1] == 1
