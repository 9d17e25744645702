"""Journals as a few lines of Python: each call writes one object, at the clock's time, with the next revision.

    j = Journal()
    q = j.queue("team", cpu=3)
    a = j.job("a", q)                 # head 1, worker 1, submitter 0.5 CPU
    j.at(0); a.workload.admit()       # W+a@0
    j.at(1); q.books(2.5, 2.5)        # Q=2.5/2.5@1
    assert j.findings(until=10) == []

`arrives=0.5` lets an event come in half a second after it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from raykueue.audit.ledger import Ledger
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Barrier, Event, Record
from raykueue.model.findings import Finding
from tests.audit.jobs import Job, Pod, Workload
from tests.audit.queued import Cohort, Flavor, Node, Queue
from tests.audit.written import EPOCH, NAMESPACE, Json, Writer

__all__ = ["EPOCH", "NAMESPACE", "PAIR", "Job", "Journal", "Json", "Pod", "Queue", "Workload"]

PAIR = {"kubernetes": "1.34.4", "kueue": "0.19.2", "kuberay": "1.6.2"}


class Journal(Writer):
    def __init__(self, version: str = "v1beta2", pair: Mapping[str, str] = PAIR, about: tuple[str, ...] = ()) -> None:
        """`about`: the rules whose findings `findings` tells; none: all."""
        super().__init__(version)
        self.about = about
        self.pair = pair

    def queue(self, name: str = "cq", **spec: Any) -> Queue:
        return Queue(self, name, **spec)

    def flavor(self, name: str = "default", tolerations: list[Json] | None = None, **labels: str) -> Flavor:
        return Flavor(self, name, labels, tolerations or [])

    def node(self, name: str = "node-1", **labels: str) -> Node:
        return Node(self, name, labels)

    def cohort(self, name: str, **spec: Any) -> Cohort:
        return Cohort(self, name, **spec)

    def job(self, name: str, queue: Queue, **settings: Any) -> Job:
        return Job(self, name, queue, **settings)

    def arrivals(self) -> list[Record]:
        """In order of arrival."""
        return sorted(self.records, key=lambda r: r.arrived)

    def ledger(self, until: float, settings: Thresholds | None = None, *, stepwise: bool = False) -> Ledger:
        ledger = Ledger(settings or Thresholds(), self.pair)
        end = EPOCH + round(until * 1e9)
        for records in self._slices() if stepwise else [(self.rev, self.arrivals())]:
            rev, batch = records
            for record in batch:
                ledger.add(record)
            if stepwise and batch:
                ledger.fold(Barrier(rev, batch[-1].arrived))
        ledger.fold(Barrier(self.rev, end))
        return ledger

    def _slices(self) -> Iterator[tuple[int, list[Record]]]:
        """One record at a time, each with the highest revision up to which nothing is missing any more."""
        arrivals = self.arrivals()
        missing = sorted(r.rev for r in arrivals if isinstance(r, Event))
        for record in arrivals:
            if isinstance(record, Event):
                missing.remove(record.rev)
            yield (missing[0] - 1 if missing else self.rev), [record]

    def findings(self, until: float, settings: Thresholds | None = None) -> list[Finding]:
        """The findings of the rules it is about; folding at once and after every record must give the same."""
        at_once = self.ledger(until, settings).unscoped([])
        stepwise = self.ledger(until, settings, stepwise=True).unscoped([])
        assert at_once == stepwise
        return [f for f in at_once if f.rule in self.about or not self.about]
