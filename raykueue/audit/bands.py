"""Is a published number what the true one was a moment ago, or may be a moment ahead?

Kueue publishes from a cache that trails the Workloads by informer lag, leads them by the scheduler's assumption, and is
written at most once per second. So a published value is right at t iff

    min truth over [t - settle, t + ahead]  <=  published(t)
    published(t)  <=  max truth over [t - settle, t] + what begins in (t, t + ahead].

In quiet this is plain equality. Source: kueue pkg/controller/core/clusterqueue_controller.go:485,
pkg/scheduler/scheduler.go:975-1055@v0.19.2. Constant amortised cost per change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from raykueue.audit.windows import Window
from raykueue.model.events import Moment

VALUE = "value"
"""The one resource of a run's window."""


@dataclass(slots=True, eq=False)
class Run:
    """A time in which the published value was outside the band without interruption."""

    side: Literal["over", "under"]
    window: Window
    published: int
    truth: int
    """Both as they were at the widest difference."""
    raised: bool = False
    """It lasted too long: it is a finding."""


class _Extreme:
    """The extreme of a step function over a window that only moves forward: a monotonic queue."""

    def __init__(self, beats: Callable[[int, int], bool]) -> None:
        self._beats = beats
        self._pending: deque[tuple[int, int]] = deque()
        self._steps: deque[tuple[int | None, int]] = deque([(None, 0)])
        # (end of the step, value); the last one has no end yet

    def push(self, t: int, value: int) -> None:
        self._pending.append((t, value))

    def over(self, start: int, end: int) -> int:
        """Over [start, end]."""
        while self._pending and self._pending[0][0] <= end:
            t, value = self._pending.popleft()
            self._steps[-1] = (t, self._steps[-1][1])
            while self._steps and not self._beats(self._steps[-1][1], value):
                self._steps.pop()
            self._steps.append((None, value))
        while (ended := self._steps[0][0]) is not None and ended <= start:
            self._steps.popleft()
        return self._steps[0][1]


class Band:
    """One published number beside its truth. Times are nanoseconds and never decrease."""

    def __init__(self, settle: int, ahead: int) -> None:
        self._settle = settle
        self._ahead = ahead
        self._low = _Extreme(lambda a, b: a < b)
        self._high = _Extreme(lambda a, b: a > b)
        self._begins: deque[tuple[int, int]] = deque()
        self._begun = 0
        self._coming = 0
        self._due: list[Moment] = []
        self._truths: deque[tuple[int, int]] = deque()
        self._seen: deque[tuple[int, int | None]] = deque()
        self._truth = 0
        self._published: int | None = None
        self.truth = 0
        self.published: int | None = None
        """Both as last told; None: unknown, so never wrong."""
        self.changed = Moment(0, 0)
        """When the truth changed last."""
        self.run: Run | None = None
        self.ended: list[Run] = []

    def set_truth(self, moment: Moment, value: int, begins: int = 0) -> None:
        """The true value from now on; `begins` is the part of it that just began."""
        if value == self.truth and not begins:
            return
        self.truth = value
        self.changed = moment
        self._truths.append((moment.t, value))
        self._low.push(moment.t, value)
        self._high.push(moment.t, value)
        if begins:
            self._begins.append((moment.t, begins))
        self._due += [Moment(moment.rev, t) for t in (moment.t - self._ahead, moment.t, moment.t + self._settle)]

    def publish(self, moment: Moment, value: int | None) -> None:
        """The published value from now on."""
        if value == self.published:
            return
        self.published = value
        self._seen.append((moment.t, value))
        self._due.append(moment)

    def advance(self, now: int) -> bool:
        """Decides all that can be decided at `now`, which is up to `ahead` before it; False if nothing is pending."""
        horizon = now - self._ahead
        due = sorted(self._due, key=lambda m: (m.t, m.rev))
        self._due = [m for m in due if m.t > horizon]
        for moment in due:
            if moment.t <= horizon:
                self._decide(moment)
        return bool(self._due)

    def _decide(self, moment: Moment) -> None:
        t = moment.t
        while self._truths and self._truths[0][0] <= t:
            self._truth = self._truths.popleft()[1]
        while self._seen and self._seen[0][0] <= t:
            self._published = self._seen.popleft()[1]
        low = self._low.over(t - self._settle, t + self._ahead)
        high = self._high.over(t - self._settle, t) + self._beginning(t)
        if self._published is None or low <= self._published <= high:
            self._end(moment)
            return
        if self.run is None:
            side: Literal["over", "under"] = "over" if self._published > high else "under"
            self.run = Run(side, Window(moment), self._published, self._truth)
        difference = abs(self._published - self._truth)
        if difference > self.run.window.peak.get(VALUE, 0):
            self.run.published, self.run.truth = self._published, self._truth
        self.run.window.set(moment, {VALUE: difference})

    def _end(self, moment: Moment) -> None:
        if self.run is not None:
            self.run.window.close(moment)
            self.ended.append(self.run)
            self.run = None

    def _beginning(self, t: int) -> int:
        """What begins in (t, t + ahead]."""
        while self._begun < len(self._begins) and self._begins[self._begun][0] <= t + self._ahead:
            self._coming += self._begins[self._begun][1]
            self._begun += 1
        while self._begun and self._begins[0][0] <= t:
            self._coming -= self._begins.popleft()[1]
            self._begun -= 1
        return self._coming
