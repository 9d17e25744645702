"""What may explain a finding: an expectation of the test, a known issue of the pair, an allowance of the pair."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from raykueue.audit.bounds import FACTS, Bounds, Formula
from raykueue.audit.thresholds import Thresholds
from raykueue.model.findings import Finding
from raykueue.model.gates import Range, within
from raykueue.model.quantities import Quantity

NAMES = (*Thresholds().names(), *FACTS)
"""What a formula may use."""


@dataclass(frozen=True, slots=True)
class Expect:
    """What a test forces: it must appear, with this cause, and with at least something."""

    rule: str
    cause: str
    bounds: Bounds
    times: int | None = None
    """At most so many; None: any number from one on."""

    @classmethod
    def of(
        cls,
        rule: str,
        cause: str,
        *,
        at_least_seconds: Formula | None = None,
        at_most_seconds: Formula | None = None,
        at_least: Mapping[str, Quantity] | None = None,
        at_most: Mapping[str, Quantity] | None = None,
        times: int | None = None,
    ) -> Expect:
        """As a test writes it; amounts are quantities.

        Raises:
            ValueError: no lower bound above zero, so nothing would be forced; or a malformed bound.
        """
        given: dict[str, Any] = {"at_least": at_least or {}, "at_most": at_most or {}}
        if at_least_seconds is not None:
            given["at_least_seconds"] = at_least_seconds
        if at_most_seconds is not None:
            given["at_most_seconds"] = at_most_seconds
        bounds = Bounds.read(given, NAMES)
        if not bounds.demands:
            raise ValueError(
                f"expecting {rule} / {cause} without a lower bound forces nothing: say at_least_seconds or at_least, "
                "above 0; what merely may appear is an allowance"
            )
        return cls(rule, cause, bounds, times)

    def __str__(self) -> str:
        return f"{self.rule} / {self.cause}"


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """A recorded defect of some versions."""

    id: str
    link: str
    rule: str
    cause: str
    tests: tuple[str, ...]
    """Patterns of the ids of the tests that may show it."""
    occurs: Literal["always", "sometimes"]
    bounds: Bounds
    review: datetime.date
    evidence: str = ""
    """Name of a journal that shows it."""
    absent_in: tuple[str, ...] = ()
    """Patterns of the ids of more tests that would show it, where a version does not have it."""
    kueue: tuple[Range, ...] = ()
    kuberay: tuple[Range, ...] = ()

    def concerns(self, test: str, pair: Mapping[str, str]) -> bool:
        """The test, on this pair, may show it."""
        return of_pair(self, pair) and any(fnmatchcase(test, pattern) for pattern in self.tests)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a pair does in ordinary operation, by documented design: it may appear, within bounds."""

    id: str
    rule: str
    cause: str
    why: str
    bounds: Bounds
    within_charge: bool = True
    """Never more than the payer is charged."""
    kueue: tuple[Range, ...] = ()
    kuberay: tuple[Range, ...] = ()


def of_pair(row: KnownIssue | Allowance, pair: Mapping[str, str]) -> bool:
    """The row is about versions of this pair."""
    return within(pair["kueue"], row.kueue) and within(pair["kuberay"], row.kuberay)


def matches(rule: str, cause: str, finding: Finding) -> bool:
    """Same rule, and a cause that fits: patterns as `evicted/*` are allowed."""
    return finding.rule == rule and fnmatchcase(finding.cause, cause)


def overdue(issues: list[KnownIssue], today: datetime.date) -> list[KnownIssue]:
    """Those past their review date: somebody must look whether they are still true."""
    return [issue for issue in issues if issue.review < today]
