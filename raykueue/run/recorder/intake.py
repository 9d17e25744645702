"""Where all streams meet: every record goes to the journal, the ledger, and the open scopes it concerns."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from raykueue.audit.written import WrittenBy
from raykueue.model.events import Barrier, Event, Gap, Header, Listed, Marker, Record
from raykueue.run.recorder.auditor import Auditor, Guarded
from raykueue.run.recorder.journal_file import JournalFile
from raykueue.run.recorder.judging import Arrivals
from raykueue.run.recorder.scopes import Router, ScopeNames, key_of
from raykueue.run.recorder.sentinels import is_sentinel


@dataclass(slots=True)
class OpenScope:
    """A scope and who listens to it."""

    names: ScopeNames
    push: Callable[[str], None]
    """Takes the encoded record of each event."""
    arrivals: Arrivals = field(default_factory=Arrivals)
    since: int = 0
    """Offset in the journal at which it was opened."""
    judged: Mapping[str, Any] | None = None
    """The last answer that was given about it."""


@dataclass(slots=True)
class Intake:
    """The one place that writes records, so their order is the same for journal, ledger and tests."""

    journal: JournalFile
    auditor: Guarded
    router: Router[OpenScope] = field(default_factory=Router)
    closed: list[ScopeNames] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    """Per kind, without sentinels."""
    gaps: int = 0
    unfolded: int = 0
    """Events since the last barrier."""
    proven: frozenset[str] = frozenset()
    """Kinds that barriers prove complete by a write."""
    folded: int = 0
    """Revision of the last barrier."""
    problems: list[str] = field(default_factory=list)
    """Why nothing can be judged any more, in this run."""
    written: WrittenBy = field(default_factory=WrittenBy)
    began: int = 0
    """Arrival of the header: what is listed first was there by then."""

    @classmethod
    def to(cls, journal: JournalFile, auditor: Auditor) -> Intake:
        """An intake that writes to these two."""
        return cls(journal, Guarded(auditor))

    def take(self, record: Event | Listed | Gap) -> None:
        """What the streams deliver. Sentinels stay outside; they only move the watermark."""
        if isinstance(record, Event):
            if is_sentinel(record.object):
                return
            key = key_of(record)
            record = self._placed(record)
            line = self.journal.append(record, key)
            self.auditor.add(record)
            self.events[record.kind] += 1
            self.unfolded += 1
            for scope in self.router.receivers(key):
                scope.push(line)
                scope.arrivals.note(record.rev)
            return
        self.gaps += isinstance(record, Gap)
        self.write(record)

    def _placed(self, event: Event) -> Event:
        """With its t*, so that a scope's part of the journal is judged as the whole of it is.

        A list can overlook an object that lived very briefly: its events, late, are folded by arrival.
        """
        if event.kind in self.proven or event.rev > self.folded:
            t = self.written.note(event.rev, event.arrived)
            return replace(event, t=self.began if event.listed and not self.folded else t)
        place = self.folded + 1
        return replace(event, t=self.written.of(place, event.arrived), place=place)

    def write(self, record: Record) -> None:
        """A record that concerns every scope."""
        if isinstance(record, Header):
            self.began = record.arrived
        self.journal.append(record)
        self.auditor.add(record)

    def mark(self, what: str, about: dict[str, Any]) -> None:
        """Something the suite did or saw, now."""
        self.write(Marker(what, time.time_ns(), about, self.written.highest))

    def passed(self, barrier: Barrier) -> None:
        """All streams are complete up to the barrier: fold, and make the journal safe."""
        barrier = replace(barrier, now=self.written.of(barrier.rev + 1, barrier.arrived))
        self.written.judged(barrier.rev)
        self.journal.append(barrier)
        self.journal.flush()
        self.auditor.fold(barrier)
        self.unfolded = 0
        self.folded = barrier.rev

    def trouble(self, text: str) -> None:
        """The record can't be trusted any more."""
        if text not in self.problems:
            self.problems.append(text)

    def open(self, scope: OpenScope) -> int:
        """Sends what is recorded already, then everything that arrives; returns how many events there were.

        Raises:
            UsageError: another scope has, or had, some of these names.
        """
        self.router.open(scope.names, scope)
        scope.since = self.journal.bytes
        self.mark("scope-open", {"scope": scope.names.name, "namespaces": list(scope.names.namespaces)})
        lines = self.journal.lines(scope.names.all_keys())
        for line in lines:
            scope.push(line)
        return len(lines)

    def close(self, name: str, why: str = "") -> None:
        """The scope gets no more events, and its findings are forgotten.

        Raises:
            UsageError: no such scope is open.
        """
        scope = self.router.close(name)
        self.closed.append(scope.names)
        self.mark("scope-close", {"scope": name, **({"why": why} if why else {})})
        self.auditor.ledger.forget(scope.names)
