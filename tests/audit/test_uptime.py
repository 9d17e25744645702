from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raykueue.audit.uptime import Deadlines, Uptime
from raykueue.model.events import Marker


def mark(clock: Uptime, what: str, t: int) -> None:
    clock.mark(Marker(what, t), t)


def test_the_clock_stands_still_from_down_until_warm() -> None:
    clock = Uptime(warm_up=10)
    assert clock.at(5) == 5
    mark(clock, "kueue-down", 7)
    assert (clock.at(20), clock.wall(8)) == (7, None)
    mark(clock, "kueue-up", 30)
    assert (clock.at(35), clock.wall(8)) == (7, 41)
    assert (clock.at(41), clock.wall(8)) == (8, 41)


def test_it_stands_still_as_long_as_either_controller_is_down() -> None:
    clock = Uptime(warm_up=0)
    mark(clock, "kueue-down", 10)
    mark(clock, "kuberay-down", 20)
    mark(clock, "kueue-up", 30)
    assert clock.at(35) == 10
    mark(clock, "kuberay-up", 40)
    assert clock.at(45) == 15


def test_a_controller_that_dies_again_while_warming_up_never_was_up() -> None:
    clock = Uptime(warm_up=10)
    mark(clock, "kueue-down", 10)
    mark(clock, "kueue-up", 20)
    mark(clock, "kueue-down", 25)
    mark(clock, "kueue-up", 40)
    assert clock.at(60) == 20


def test_other_markers_and_a_controller_that_was_never_down_change_nothing() -> None:
    clock = Uptime(warm_up=10)
    for what in ("scope-open", "kueue-up", "ray-down", "down"):
        mark(clock, what, 5)
    assert clock.at(9) == 9


def test_a_deadline_passes_after_its_time_not_at_it() -> None:
    due: Deadlines[str] = Deadlines(Uptime(0))
    due.set("a", 0, 10)
    assert due.until("a") == 10
    assert list(due.passed(10)) == []
    assert list(due.passed(11)) == [("a", 10)]
    assert len(due) == 0


def test_a_deadline_can_be_replaced_and_dropped() -> None:
    due: Deadlines[str] = Deadlines(Uptime(0))
    due.set("a", 0, 10)
    due.set("a", 5, 10)
    due.set("b", 0, 3)
    due.drop("b")
    due.drop("never set")
    assert "a" in due
    assert "b" not in due
    assert list(due.passed(12)) == []
    assert list(due.passed(20)) == [("a", 15)]
    assert due._heap == []


def test_deadlines_come_oldest_first_each_at_its_own_time_across_an_outage() -> None:
    clock = Uptime(0)
    due: Deadlines[str] = Deadlines(clock)
    for key, limit in (("late", 20), ("early", 5), ("middle", 15)):
        due.set(key, 0, limit)
    assert list(due.passed(10)) == [("early", 5)]
    mark(clock, "kuberay-down", 10)
    assert due.until("late") is None
    assert list(due.passed(100)) == []
    mark(clock, "kuberay-up", 110)
    assert due.until("late") == 120
    assert list(due.passed(200)) == [("middle", 115), ("late", 120)]


@given(st.lists(st.tuples(st.integers(1, 50), st.sampled_from(["kueue-down", "kueue-up", "kuberay-up", "x"]))))
def test_the_clock_never_runs_backwards_nor_faster_than_time(steps: list[tuple[int, str]]) -> None:
    clock = Uptime(warm_up=7)
    t = shown = 0
    for pause, what in steps:
        t += pause
        now = clock.at(t)
        assert 0 <= now - shown <= pause
        shown = now
        mark(clock, what, t)
        future = clock.wall(shown + 3)
        assert future is None or future >= t + 3
