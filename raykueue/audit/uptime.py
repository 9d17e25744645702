"""A clock that stands still while a controller is known dead, and deadlines by it.

Known dead: between the markers `kueue-down` and `kueue-up`, `kuberay-down` and `kuberay-up`, and for as long after the
latter as its caches need to warm up.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from raykueue.model.events import Marker

K = TypeVar("K")

CONTROLLERS = ("kueue", "kuberay")


class Uptime:
    """Wall time without the outages; all in nanoseconds. Asked and told in order of time.

    Args:
        warm_up: how long a controller that is back still counts as down.
        controllers: any of them that is down stops the clock.
    """

    def __init__(self, warm_up: int, controllers: tuple[str, ...] = CONTROLLERS) -> None:
        self._warm_up = warm_up
        self._controllers = controllers
        self._down: set[str] = set()
        self._lost = 0
        self._since: int | None = None
        self._ready = 0

    def mark(self, marker: Marker, t: int) -> None:
        """Takes note of a controller that goes down or comes back; ignores every other marker."""
        controller, _, what = marker.what.rpartition("-")
        if controller not in self._controllers or what not in ("down", "up"):
            return
        self._settle(t)
        if what == "down":
            self._down.add(controller)
            self._since = t if self._since is None else self._since
        elif controller in self._down:
            self._down.discard(controller)
            self._ready = max(self._ready, t + self._warm_up)

    def at(self, t: int) -> int:
        """The clock's time at wall time `t`."""
        if self._since is None:
            return t - self._lost
        self._settle(t)
        return (t if self._since is None else self._since) - self._lost

    def wall(self, time: int) -> int | None:
        """When the clock will show `time`, by all that is known; None: it stands still, and nobody knows how long."""
        if self._since is None:
            return time + self._lost
        return None if self._down else time + self._lost + self._ready - self._since

    def _settle(self, t: int) -> None:
        if self._since is not None and not self._down and t >= self._ready:
            self._lost += self._ready - self._since
            self._since = None


@dataclass(slots=True)
class Deadlines(Generic[K]):
    """What is due when, by such a clock; one deadline per key. Constant amortised cost, but for a heap's logarithm."""

    uptime: Uptime
    _due: dict[K, int] = field(default_factory=dict)
    _heap: list[tuple[int, int, K]] = field(default_factory=list)
    _count: int = 0

    def set(self, key: K, t: int, limit: int) -> None:
        """`limit` nanoseconds of uptime after wall time `t`, which is now. Replaces the key's deadline."""
        due = self.uptime.at(t) + limit
        self._due[key] = due
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, key))

    def drop(self, key: K) -> None:
        """There is no deadline any more."""
        self._due.pop(key, None)
        if not self._due:
            self._heap.clear()

    def until(self, key: K) -> int | None:
        """Wall time of a deadline; None if nobody knows, because the clock stands still. Raises KeyError."""
        return self.uptime.wall(self._due[key])

    def passed(self, t: int) -> Iterable[tuple[K, int]]:
        """Takes every deadline that lies before wall time `t`, with its own wall time, oldest first.

        What happens exactly at a deadline is still in time.
        """
        now = self.uptime.at(t)
        return self._take(now, t) if self._heap and self._heap[0][0] < now else ()

    def _take(self, now: int, t: int) -> Iterator[tuple[K, int]]:
        while self._heap and self._heap[0][0] < now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                yield key, self.uptime.wall(due) or t

    def __contains__(self, key: K) -> bool:
        return key in self._due

    def __len__(self) -> int:
        return len(self._due)
