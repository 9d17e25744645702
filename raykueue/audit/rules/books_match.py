"""Rule `books-match`: what Kueue says is used is what its Workloads are charged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, TypeAlias

from raykueue.audit.answers import Obligation
from raykueue.audit.bands import Band, Run
from raykueue.audit.books.changes import Change, HoldChange, QueueChange
from raykueue.audit.books.entities import Queue
from raykueue.audit.books.fold import Books
from raykueue.audit.rules.booking_runs import Line, findings_of
from raykueue.audit.rules.rule import Rule
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds, ns
from raykueue.model.events import Marker, Moment
from raykueue.model.findings import Class, Finding
from raykueue.model.queues import Booked, Entry, FlavorResource
from raykueue.model.workloads import Charge

_Truth: TypeAlias = dict[tuple[str, Line], int]


class BooksMatch(Rule):
    """Each line of a ClusterQueue's status beside the sum of the holds it stands for.

    Silent while Kueue is down or warming up, where the status has no such line, and for a queue without status or
    being deleted: unknown is not zero.
    """

    name: ClassVar[str] = "books-match"
    sentence: ClassVar[str] = "booked follows charged within Kueue's publishing delay, and equals it when it is quiet"
    klass: ClassVar[Class] = "contract"
    why: ClassVar[str] = "people and autoscalers decide by the status; a wrong line hides free quota or sold-out quota"
    source: ClassVar[str] = "kueue apis/kueue/v1beta2/clusterqueue_types.go:362-377@v0.19.2"
    thresholds: ClassVar[tuple[str, ...]] = ("settle", "ahead", "persist", "restart")
    sees: ClassVar[frozenset[type | str] | None] = frozenset({HoldChange, QueueChange})

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._bands: dict[str, dict[Line, Band]] = defaultdict(dict)
        self._pending: set[tuple[str, Line]] = set()
        self._raised: dict[str, list[tuple[Line, Run]]] = defaultdict(list)
        self._queues: dict[str, Queue] = {}
        self._told: dict[str, Moment] = {}
        self._forgotten: set[str] = set()
        self._down = False
        self._resume: int | None = None

    def see(self, change: Change) -> None:
        self._wake(change.moment.t)
        if isinstance(change, HoldChange):
            self._charge(change)
        elif isinstance(change, QueueChange):
            self._book(change)

    def mark(self, marker: Marker, moment: Moment) -> None:
        self._wake(moment.t)
        if marker.what == "kueue-down":
            self._down, self._resume = True, None
            for name, bands in self._bands.items():
                for line in bands:
                    self._publish(name, line, moment, None)
        elif marker.what == "kueue-up" and self._down:
            self._resume = moment.t + ns(self.limits.restart)

    def advance(self, now: int) -> None:
        super().advance(now)
        self._wake(now)
        horizon = now - ns(self.limits.ahead)
        for name, line in list(self._pending):
            band = self._bands[name][line]
            waits = band.advance(now)
            self._raise(name, line, band, horizon)
            if not waits and (band.run is None or band.run.raised):
                self._pending.discard((name, line))

    def findings(self) -> Iterator[Finding]:
        for name, runs in self._raised.items():
            queue = self._queues.get(name)
            if runs and queue is not None:
                yield from findings_of(queue.ref, runs, self.now, self.name)

    def obligations(self, scope: Scope) -> Iterable[Obligation]:
        for name in sorted(scope.cluster_queues & self._bands.keys()):
            owed = [self._owes(name, line, band) for line, band in sorted(self._bands[name].items())]
            open_ones = [o for o in owed if o is not None]
            if open_ones:
                until, text = max(open_ones)
                yield Obligation(self.name, f"ClusterQueue {name}: {text}", until)

    def forget(self, scope: Scope) -> None:
        for name in scope.cluster_queues:
            for index in (self._bands, self._raised, self._queues, self._told):
                index.pop(name, None)
        self._forgotten |= scope.cluster_queues & self.books.queues.keys()
        self._pending = {(name, line) for name, line in self._pending if name not in scope.cluster_queues}

    # -- truth and what is published

    def _charge(self, change: HoldChange) -> None:
        before, after = _lines(change.before), _lines(change.after)
        for name, line in {**before, **after}:
            if name in self._forgotten:
                continue
            begins = after[name, line] if (name, line) not in before else 0
            band = self._band(name, line)
            delta = after.get((name, line), 0) - before.get((name, line), 0)
            band.set_truth(change.moment, band.truth + delta, begins)
            self._pending.add((name, line))

    def _book(self, change: QueueChange) -> None:
        if change.name in self._forgotten:
            if change.after is None:
                self._forgotten.discard(change.name)
            return
        if change.after is not None:
            self._queues[change.name] = change.after
        if change.before is None or change.after is None or change.before.booked != change.after.booked:
            self._told[change.name] = change.moment
        self._publish_all(change.name, change.after, change.moment)

    def _publish_all(self, name: str, queue: Queue | None, moment: Moment) -> None:
        published: dict[Line, int] = {}
        if queue is not None and queue.booked is not None:
            published = _published(queue.booked, queue.spec.quotas.keys())
            for line, value in _borrowed(queue).items():
                self._band(name, line).set_truth(moment, value)
        for line in {**self._bands.get(name, {}), **published}:
            self._publish(name, line, moment, published.get(line))

    def _publish(self, name: str, line: Line, moment: Moment, value: int | None) -> None:
        self._band(name, line).publish(moment, None if self._down else value)
        self._pending.add((name, line))

    def _wake(self, t: int) -> None:
        """Kueue's caches are warm again: what it says counts."""
        if self._resume is not None and t >= self._resume:
            resumed = self._resume
            self._down, self._resume = False, None
            for name, queue in self._queues.items():
                # The queue's own last revision: a replay of its part of the journal knows no other.
                self._publish_all(name, queue, Moment(self._told[name].rev, resumed))

    def _band(self, name: str, line: Line) -> Band:
        bands = self._bands[name]
        if line not in bands:
            bands[line] = Band(ns(self.limits.settle), ns(self.limits.ahead))
        return bands[line]

    # -- what it comes to

    def _raise(self, name: str, line: Line, band: Band, horizon: int) -> None:
        for run in [*band.ended, *([band.run] if band.run else [])]:
            end = run.window.end.t if run.window.end else horizon
            if end - run.window.begin.t > ns(self.limits.persist) and not run.raised:
                run.raised = True
                self._raised[name].append((line, run))
        band.ended.clear()

    def _owes(self, name: str, line: Line, band: Band) -> tuple[int, str] | None:
        """(until, text) if something may still be found wrong about a line."""
        if band.published is None or (band.run is not None and band.run.raised):
            return None
        told = self._told.get(name, band.changed)
        if band.published != band.truth:
            since = max(told.t, band.changed.t + ns(self.limits.settle))
            until = since + ns(self.limits.persist + self.limits.ahead)
            return until, f"{line} says {line.tell(band.published)}, charged is {line.tell(band.truth)}"
        if band.run is not None:
            return told.t + ns(self.limits.ahead), f"{line} was just put right"
        if band.changed.rev > told.rev:
            return band.changed.t + ns(self.limits.settle), f"{line} was not published since the last change"
        return None


def _lines(charge: Charge | None) -> _Truth:
    if charge is None:
        return {}
    lines: _Truth = {}
    for measure, counted in (("reservation", True), ("usage", charge.admitted)):
        if counted:
            lines[charge.cluster_queue, Line(measure)] = 1
            for (flavor, resource), value in charge.totals.items():
                lines[charge.cluster_queue, Line(measure, flavor, resource)] = value
    return lines


def _sections(booked: Booked) -> tuple[tuple[str, Mapping[FlavorResource, Entry]], ...]:
    return (("reservation", booked.reservation), ("usage", booked.usage))


def _published(booked: Booked, keys: Iterable[FlavorResource]) -> dict[Line, int]:
    """What the status says, of the keys that the spec has: a flavor dropped from the spec vanishes from the status."""
    lines: dict[Line, int] = {}
    wanted = set(keys)
    for measure, count in (("reservation", booked.reserving), ("usage", booked.admitted)):
        if count is not None:
            lines[Line(measure)] = count
    for measure, entries in _sections(booked):
        for key in entries.keys() & wanted:
            lines[Line(measure, *key)] = entries[key].total
            lines[Line(measure, *key, borrowed=True)] = entries[key].borrowed
    return lines


def _borrowed(queue: Queue) -> dict[Line, int]:
    """What should be borrowed by the status's own totals: nothing without a cohort."""
    assert queue.booked is not None
    lines: dict[Line, int] = {}
    for measure, entries in _sections(queue.booked):
        for key in entries.keys() & queue.spec.quotas.keys():
            above = max(0, entries[key].total - queue.spec.quotas[key].nominal) if queue.spec.parent else 0
            lines[Line(measure, *key, borrowed=True)] = above
    return lines
