"""One violation while it lasts: peak and integral of an amount over a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from raykueue.model.events import Moment
from raykueue.model.quantities import largest

_NS = 1_000_000_000


@dataclass(slots=True)
class Window:
    """A step function of amounts per resource from `begin` on, integrated exactly.

    A window of zero seconds between two revisions is real; its integral is zero.
    """

    begin: Moment
    end: Moment | None = None
    peak: dict[str, int] = field(default_factory=dict)
    _level: dict[str, int] = field(default_factory=dict)
    _integral: dict[str, int] = field(default_factory=dict)
    _since: int = 0

    def set(self, moment: Moment, level: Mapping[str, int]) -> None:
        """From now on the amounts are these."""
        self._integral = self._until(moment.t)
        self._since = moment.t
        self._level = {r: value for r, value in level.items() if value}
        self.peak = largest(self.peak, self._level)

    def close(self, moment: Moment) -> None:
        """It is over."""
        self.set(moment, {})
        self.end = moment

    def seconds(self, now: int) -> float:
        """Its length; up to `now` (ns) while open."""
        return ((self.end.t if self.end else max(now, self.begin.t)) - self.begin.t) / _NS

    def resource_seconds(self, now: int) -> dict[str, float]:
        """The integral per resource; up to `now` (ns) while open."""
        exact = self._integral if self.end else self._until(now)
        return {r: value / _NS for r, value in exact.items() if value}

    def _until(self, t: int) -> dict[str, int]:
        span = max(0, t - self._since)
        grown = dict(self._integral)
        for resource, value in self._level.items():
            grown[resource] = grown.get(resource, 0) + value * span
        return grown
