"""What the ledger answers besides findings: what spoils the record, and what a rule still waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ProblemKind: TypeAlias = Literal["gap", "late", "unordered", "unattributed"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why nothing can be judged over some time: it makes the run infra, by name. Never the product's fault."""

    kind: ProblemKind
    text: str
    namespace: str = ""
    """Empty: it concerns every scope that was open then."""
    until: int = 0
    """Last revision it concerns."""


@dataclass(frozen=True, slots=True)
class Obligation:
    """What a rule still waits for. When none is left, nothing can fire any more."""

    rule: str
    text: str
    until: int | None
    """Nanoseconds since the epoch after which the rule has decided by itself; None: only an event ends it."""
