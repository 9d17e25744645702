"""How long something has been so, in time that counts: what lasted too long is a finding, what just began is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from raykueue.audit.books.entities import Job
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import ns
from raykueue.audit.uptime import Uptime
from raykueue.audit.windows import Window
from raykueue.model.events import Marker, Moment
from raykueue.model.findings import Ref


@dataclass(slots=True, eq=False)
class Episode:
    """One time in which a job was not as it should be."""

    job: Job
    cause: str
    window: Window
    limit: float | None
    """Seconds of uptime that are tolerated: longer is too long. None: nothing is."""
    began: int
    """By the clock of uptime."""
    refs: dict[str, Ref] = field(default_factory=dict)
    """What else it is about, by UID: grows only."""


class Episodes:
    """Open ones by key, and those that ended too late. Constant cost per change."""

    def __init__(self, warm_up: float) -> None:
        self._uptime = Uptime(ns(warm_up))
        self._open: dict[tuple[str, str], Episode] = {}
        self._late: list[Episode] = []

    def mark(self, marker: Marker, moment: Moment) -> None:
        """A controller may have gone down or come back."""
        self._uptime.mark(marker, moment.t)

    def open(self, job: Job, what: str, cause: str, limit: float | None, moment: Moment) -> Episode:
        """The episode that goes on, or one that begins now. What `limit` says last is in force."""
        key = (job.ref.uid, what)
        one = self._open.get(key)
        if one is None:
            one = self._open[key] = Episode(job, cause, Window(moment), limit, self._uptime.at(moment.t))
        one.limit = limit
        return one

    def close(self, uid: str, what: str, moment: Moment) -> None:
        """All is well again with that job: if it took too long, it is a finding for ever."""
        one = self._open.pop((uid, what), None)
        if one is not None:
            one.window.close(moment)
            if self._too_long(one, moment.t):
                self._late.append(one)

    def lasting(self, uid: str, what: str) -> Episode | None:
        """The one that is open."""
        return self._open.get((uid, what))

    def late(self, now: int) -> Iterator[Episode]:
        """Those that took too long, up to `now` (ns) if they are still open."""
        yield from self._late
        for one in self._open.values():
            if self._too_long(one, now):
                yield one

    def pending(self, scope: Scope, now: int) -> Iterator[tuple[Episode, int]]:
        """Those of a scope that may still come to take too long, each with the time (ns) at which it will have.

        Without those whose time stands still, because a controller is down.
        """
        for one in self._open.values():
            if one.limit is not None and scope.owns(one.job.ref.namespace, "") and not self._too_long(one, now):
                until = self._uptime.wall(one.began + ns(one.limit))
                if until is not None:
                    yield one, until

    def forget(self, scope: Scope) -> None:
        self._late = [one for one in self._late if not scope.owns(one.job.ref.namespace, "")]
        for key in [key for key, one in self._open.items() if scope.owns(one.job.ref.namespace, "")]:
            del self._open[key]

    def _too_long(self, one: Episode, t: int) -> bool:
        return one.limit is None or self._uptime.at(t) - one.began > ns(one.limit)


def describe_refs(refs: Mapping[str, Ref], shown: int = 3) -> str:
    """Names for people: a few of them."""
    names = sorted(ref.name for ref in refs.values())
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")
