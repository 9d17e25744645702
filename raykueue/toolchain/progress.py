"""Progress as plain lines, which read well on a terminal and in a CI log: none for two seconds, then one every 15."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Log = Callable[[str], None]

QUIET = 2.0
"""Seconds for which nothing is said: what takes no longer needs no line."""
EVERY = 15.0
"""Seconds between two lines about one step."""


class Progress:
    """Tells about a number of steps, one after the other."""

    def __init__(self, log: Log, clock: Callable[[], float] = time.monotonic) -> None:
        self.log = log
        self._clock = clock
        self._step: _Step | None = None

    @contextmanager
    def step(self, what: str, position: int, total: int, estimate: float, after: float) -> Iterator[None]:
        """One step: what is done, the how manieth of how many, seconds it may take, seconds for those that follow."""
        step = self._step = _Step(what, f"{position} of {total}", estimate, after, self._clock())
        try:
            yield
            if step.said:
                took = self._clock() - step.began
                self.log(f"{step.what} ({step.place}): done in {clock_time(took)}{_rest(after, 'for the rest')}")
        finally:
            self._step = None

    def tick(self) -> None:
        """To be called often while something runs; says a line when one is due."""
        step, now = self._step, self._clock()
        if step is None or now - step.began < QUIET or (step.said and now - step.said < EVERY):
            return
        first, step.said = not step.said, now
        elapsed = now - step.began
        state = "started" if first else f"{clock_time(elapsed)} so far"
        if elapsed > step.estimate:
            left = ", longer than usual" + _rest(step.after, "for the rest")
        else:
            left = _rest(step.estimate - elapsed + step.after, "in all")
        self.log(f"{step.what} ({step.place}): {state}{left}")


class _Step:
    def __init__(self, what: str, place: str, estimate: float, after: float, began: float) -> None:
        self.what, self.place, self.estimate, self.after, self.began = what, place, estimate, after, began
        self.said = 0.0
        """When the last line was said, by the clock of `began`; 0 = none yet."""


def _rest(seconds: float, of: str) -> str:
    if seconds <= 0:
        return ""
    return (
        f", up to about {max(1, round(seconds / 60))} min left {of}" if seconds >= 45 else f", under a minute left {of}"
    )


def clock_time(seconds: float) -> str:
    """75.2 → "1:15"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"
