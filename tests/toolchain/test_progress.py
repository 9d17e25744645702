from __future__ import annotations

import pytest

from raykueue.toolchain.progress import Progress


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def told(seconds: int, estimate: float, after: float = 0) -> list[str]:
    """The lines about one step of that many seconds, ticking twice a second."""
    clock, lines = Clock(), list[str]()
    progress = Progress(lines.append, clock)
    with progress.step("building kueue 0.19.2", 3, 7, estimate, after):
        for _ in range(seconds * 2):
            clock.now += 0.5
            progress.tick()
    return lines


def test_nothing_is_said_about_what_takes_under_two_seconds() -> None:
    assert told(1, 100) == []


def test_a_line_says_what_how_many_elapsed_and_what_is_left() -> None:
    lines = told(40, estimate=264, after=90)
    assert lines == [
        "building kueue 0.19.2 (3 of 7): started, up to about 6 min left in all",
        "building kueue 0.19.2 (3 of 7): 0:17 so far, up to about 6 min left in all",
        "building kueue 0.19.2 (3 of 7): 0:32 so far, up to about 5 min left in all",
        "building kueue 0.19.2 (3 of 7): done in 0:40, up to about 2 min left for the rest",
    ]


def test_a_long_step_says_a_line_every_15_seconds_at_most() -> None:
    assert len(told(600, 900)) == 1 + (600 - 2) // 15 + 1


def test_a_step_beyond_its_estimate_promises_nothing_about_itself() -> None:
    lines = told(20, estimate=10)
    assert lines[1] == "building kueue 0.19.2 (3 of 7): 0:17 so far, longer than usual"
    assert lines[2] == "building kueue 0.19.2 (3 of 7): done in 0:20"


def test_a_failed_step_is_not_called_done() -> None:
    clock, lines = Clock(), list[str]()
    progress = Progress(lines.append, clock)

    def fail() -> None:
        with progress.step("building", 1, 1, 100, 0):
            clock.now += 5
            progress.tick()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert len(lines) == 1


def test_ticks_between_steps_say_nothing() -> None:
    lines: list[str] = []
    Progress(lines.append).tick()
    assert lines == []
