"""Where a Workload of higher priority waits for longer than a scheduling cycle, though it need not.

`inversion`: lower ones hold what it could take by preemption. `overtaking`: there is room for it, and a lower one of
its ClusterQueue is given quota. Only the first in line of each ClusterQueue is looked at, and only where nothing but
quota decides: no stopped ClusterQueue, no tainted flavor, no node selector of the Workload's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from raykueue.audit.cohorts import CohortCycle
from raykueue.audit.contenders import History
from raykueue.audit.victims import Contender, Room, blocked
from raykueue.model.events import Moment
from raykueue.model.findings import Ref


@dataclass(frozen=True, slots=True)
class Inversion:
    """One time in which the order of priorities did not hold."""

    kind: Literal["inversion", "overtaking"]
    who: Ref
    lower: tuple[Ref, ...]
    cluster_queue: str
    begin: Moment
    end: Moment


@dataclass(frozen=True, slots=True)
class _Wait:
    who: Ref
    since: Moment
    lower: tuple[Ref, ...]


def inversions(history: History, cycle: int) -> Iterator[Inversion]:
    """All that lasted for more than `cycle` nanoseconds of Kueue's uptime.

    Costs, at each change of a ClusterQueue, as much as there are Workloads in its cohort.
    """
    line = _Line(history)
    blocked_since: dict[str, _Wait] = {}
    for moment, uid in history.turns:
        yield from _overtaken(history, line, moment, uid, cycle)
        for name in sorted(line.turn(uid, moment)):
            wait = _blocked(history, line, name, moment)
            known = blocked_since.get(name)
            if known is not None and (wait is None or wait.who != known.who):
                yield from _told(history, blocked_since.pop(name), name, moment, cycle)
                known = None
            if wait is not None and known is None:
                blocked_since[name] = wait
    for name, wait in blocked_since.items():
        yield from _told(history, wait, name, history.last, cycle)


class _Line:
    """Who waits where, since when."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._waiting: dict[str, dict[str, Moment]] = {}
        self._where: dict[str, str] = {}

    def turn(self, uid: str, moment: Moment) -> set[str]:
        """A Workload changed, or (without UID) everything may have; returns the ClusterQueues that this concerns."""
        history, rev = self._history, moment.rev
        touched: set[str] = set()
        for one in [uid] if uid else list(history.lives):
            now, before = history.waiting(one, rev), self._where.pop(one, "")
            held = [h.cluster_queue for at in (rev - 1, rev) if (h := history.holder(one, at)) is not None]
            touched |= {name for name in (before, *held) if name}
            since = self._waiting[before].pop(one) if before else moment
            if now is not None:
                self._where[one] = now.cluster_queue
                self._waiting.setdefault(now.cluster_queue, {})[one] = since
                touched.add(now.cluster_queue)
        return {name for place in touched for name in history.beside(place, rev)} | touched

    def first(self, name: str, rev: int, but: str = "") -> tuple[Contender, Moment] | None:
        """The first in line, and since when it waits; `but`: without that one."""
        found = [
            (one, since)
            for uid, since in self._waiting.get(name, {}).items()
            if uid != but and (one := self._history.waiting(uid, rev)) is not None
        ]
        return min(found, key=lambda it: (-it[0].priority, it[0].queued, it[0].ref.uid), default=None)


def _overtaken(history: History, line: _Line, moment: Moment, uid: str, cycle: int) -> Iterator[Inversion]:
    """Somebody was given quota: did one of higher priority wait, for whom there was room?"""
    lower = history.holder(uid, moment.rev) if uid else None
    if lower is None or history.holder(uid, moment.rev - 1) is not None:
        return
    name = lower.cluster_queue
    first = line.first(name, moment.rev - 1, but=uid)
    if first is None or first[0].priority <= lower.priority:
        return
    who, since = first
    room = _room(history, who, moment.rev - 1)
    if room is not None and not room.lacking(who):
        yield from _told(history, _Wait(who.ref, since, (lower.ref,)), name, moment, cycle, "overtaking")


def _blocked(history: History, line: _Line, name: str, moment: Moment) -> _Wait | None:
    """The first in line, if lower ones hold what it could take."""
    first = line.first(name, moment.rev)
    room = _room(history, first[0], moment.rev) if first else None
    lower = blocked(room, first[0]) if first and room else []
    return _Wait(first[0].ref, moment, tuple(one.ref for one in lower)) if first and lower else None


def _room(history: History, who: Contender, rev: int) -> Room | None:
    """None if something else than quota and priority may decide."""
    if not history.knows(who.cluster_queue, rev) or history.picky(who) or history.unmodelled(who, rev):
        return None
    room = history.room(who.cluster_queue, rev)
    if room.stopped(who.cluster_queue) or room.unmodelled(who.cluster_queue):
        return None
    try:
        room.lacking(who)
    except CohortCycle:
        return None
    return room


def _told(
    history: History,
    wait: _Wait,
    name: str,
    end: Moment,
    cycle: int,
    kind: Literal["inversion", "overtaking"] = "inversion",
) -> Iterator[Inversion]:
    if history.uptime(end.t) - history.uptime(wait.since.t) > cycle:
        yield Inversion(kind, wait.who, wait.lower, name, wait.since, end)
