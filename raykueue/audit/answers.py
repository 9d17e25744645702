"""What the ledger answers besides findings: what spoils the record, and what a rule still waits for."""

from __future__ import annotations

from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the bounds of a finding depend on, of the job that it is about."""

    grace: float = 30.0
    """Largest grace of the job's pods, in seconds."""
    ttl: float = 0.0
    """ttlSecondsAfterFinished."""
    charge: Mapping[str, int] | None = None
    """The most its payer was charged, per resource; None: nobody pays."""
