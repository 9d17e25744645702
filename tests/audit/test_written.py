from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raykueue.audit.order import Order
from raykueue.audit.written import WrittenBy
from raykueue.model.events import Barrier, Event


def test_a_revision_had_been_written_when_any_later_one_arrived() -> None:
    written = WrittenBy()
    assert [written.note(rev, arrived) for rev, arrived in ((3, 10), (1, 20), (5, 25), (4, 30))] == [10, 10, 25, 25]
    assert written.highest == 5
    assert written.of(4, 99) == 25
    assert written.of(6, 99) == 99


def test_what_was_judged_is_forgotten() -> None:
    written = WrittenBy()
    written.note(3, 10)
    written.note(7, 20)
    written.judged(3)
    assert written.of(4, 99) == 20
    assert written.highest == 7


@given(st.permutations(range(1, 30)))
def test_it_says_what_sorting_the_whole_would_say(revs: list[int]) -> None:
    written, order = WrittenBy(), Order()
    told = {}
    for arrived, rev in enumerate(revs, 100):
        told[rev] = written.note(rev, arrived)
        order.add(Event("Pod", "ADDED", rev, arrived, {"metadata": {"name": "p", "uid": "u"}}))
    assert {moment.rev: moment.t for moment, _ in order.take(Barrier(30, 999)).items} == told


def test_the_order_takes_the_times_that_a_recorder_knew() -> None:
    order = Order()
    body = {"metadata": {"name": "p", "uid": "u"}}
    order.add(Event("Pod", "ADDED", 5, 50, body, t=40))
    order.add(Event("Node", "ADDED", 3, 60, body, t=45, place=6))
    batch = order.take(Barrier(6, 99, now=70))
    assert [(moment.rev, moment.t) for moment, _ in batch.items] == [(5, 40), (6, 45)]
    assert batch.now == 70
    assert not order.add(Event("Node", "ADDED", 8, 80, body, place=6)), "its place is what counts"
