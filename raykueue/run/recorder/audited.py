"""The real ledger, asked by the names of a scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from raykueue.audit.answers import Circumstances, Obligation
from raykueue.audit.handovers import HandOver
from raykueue.audit.ledger import Ledger
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.errors import UsageError
from raykueue.model.events import Barrier, Record
from raykueue.model.findings import Finding
from raykueue.run.recorder.scopes import ScopeNames


class LedgerAuditor:
    """`raykueue.audit.ledger.Ledger` as an `Auditor`."""

    def __init__(self, settings: Mapping[str, Any], pair: Mapping[str, str]) -> None:
        """
        Raises:
            UsageError: the settings hold bad thresholds.
        """
        try:
            thresholds = Thresholds.from_settings(settings)
        except ValueError as error:
            raise UsageError(str(error)) from error
        self._ledger = Ledger(thresholds, pair)

    def add(self, record: Record) -> None:
        """One more record, in order of arrival."""
        self._ledger.add(record)

    def fold(self, barrier: Barrier) -> None:
        """Judges everything up to the barrier."""
        self._ledger.fold(barrier)

    def findings(self, scope: ScopeNames) -> list[Finding]:
        """Of that scope, open ones included."""
        return self._ledger.findings(_scope(scope))

    def unscoped(self, scopes: Iterable[ScopeNames]) -> list[Finding]:
        """Of none of these."""
        return self._ledger.unscoped([_scope(scope) for scope in scopes])

    def problems(self, scope: ScopeNames) -> list[str]:
        """Why that scope can't be judged."""
        return [f"{problem.kind}: {problem.text}" for problem in self._ledger.problems(_scope(scope))]

    def obligations(self, scope: ScopeNames) -> list[Obligation]:
        """What the rules still wait for in that scope."""
        return self._ledger.obligations(_scope(scope))

    def circumstances(self, findings: Iterable[Finding]) -> dict[str, Circumstances]:
        """By finding: what the bounds of its explanation depend on."""
        return self._ledger.circumstances(findings)

    def handovers(self, scope: ScopeNames) -> list[HandOver]:
        """Quota that changed hands in that scope while pods that had it before still lived."""
        return self._ledger.handovers(_scope(scope))

    def forget(self, scope: ScopeNames) -> None:
        """That scope is closed."""
        self._ledger.forget(_scope(scope))


def _scope(names: ScopeNames) -> Scope:
    return Scope(
        frozenset(names.namespaces),
        frozenset(names.cluster_queues),
        frozenset(names.flavors),
        frozenset(names.cohorts),
    )
