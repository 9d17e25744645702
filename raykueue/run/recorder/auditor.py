"""The ledger as the recorder uses it; a defect of the ledger must not cost the journal."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from raykueue.audit.answers import Circumstances
from raykueue.audit.handovers import HandOver
from raykueue.model.events import Barrier, Record
from raykueue.model.findings import Finding
from raykueue.run.recorder.scopes import ScopeNames


class Obligation(Protocol):
    """What a rule still waits for."""

    @property
    def rule(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def until(self) -> int | None:
        """Nanoseconds since the epoch, after which the rule has decided by itself; None: only an event ends it."""
        ...


class Auditor(Protocol):
    """Folds records into findings (`raykueue.audit.Ledger`, adapted by `ledger`)."""

    def add(self, record: Record) -> None: ...
    def fold(self, barrier: Barrier) -> None: ...
    def findings(self, scope: ScopeNames) -> Sequence[Finding]: ...
    def unscoped(self, scopes: Iterable[ScopeNames]) -> Sequence[Finding]: ...
    def problems(self, scope: ScopeNames) -> Sequence[str]: ...
    def obligations(self, scope: ScopeNames) -> Sequence[Obligation]: ...
    def circumstances(self, findings: Iterable[Finding]) -> Mapping[str, Circumstances]: ...
    def handovers(self, scope: ScopeNames) -> Sequence[HandOver]: ...
    def forget(self, scope: ScopeNames) -> None: ...


class Guarded:
    """An auditor that stops at its first exception, which from then on is a problem of every scope."""

    def __init__(self, auditor: Auditor) -> None:
        self._auditor = auditor
        self.broken = ""

    def add(self, record: Record) -> None:
        """One more record, in order of arrival."""
        if not self.broken:
            try:
                self._auditor.add(record)
            except Exception as error:  # noqa: BLE001 - whatever it is, the journal goes on and nobody is judged
                self._stop(error)

    def fold(self, barrier: Barrier) -> None:
        """Every kind is complete up to the barrier."""
        if not self.broken:
            try:
                self._auditor.fold(barrier)
            except Exception as error:  # noqa: BLE001 - as above
                self._stop(error)

    @property
    def ledger(self) -> Auditor:
        """To ask it; its answers mean nothing once `broken` is set."""
        return self._auditor

    def _stop(self, error: Exception) -> None:
        traceback.print_exc(file=sys.stderr)
        self.broken = f"the ledger stopped: {type(error).__name__}: {error} (see the recorder's log)"
