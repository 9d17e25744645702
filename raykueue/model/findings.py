"""What the ledger says: findings, what they amount to, and the verdicts that follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from raykueue.model.events import Moment

Class: TypeAlias = Literal["contract", "hazard", "invariant"]
"""contract: a documented promise is broken. hazard: nobody promised, but somebody's quota is used unpaid or idle.
invariant: Kubernetes itself excludes it, so suspect ourselves first."""


class Verdict(StrEnum):
    """What became of a test. Never mixed: no infra, lost or empty run is ever green."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    KNOWN = "known"
    FIXED = "fixed"
    INFRA = "infra"
    SKIPPED = "skipped"
    NOT_APPLICABLE = "not-applicable"


@dataclass(frozen=True, slots=True)
class Ref:
    """Names one object for ever: kinds and names are re-used, UIDs are not."""

    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace + '/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation: the rule, the objects, the window, the amount and the cause.

    Amounts are integers per resource: millicores for cpu, bytes for memory and storage, pieces for everything else.
    """

    id: str
    """A hash of rule, payer and first revision: the same in judging and in replay."""
    rule: str
    klass: Class
    cause: str
    text: str
    """As a person would tell it, with amounts and milliseconds."""
    objects: tuple[Ref, ...]
    begin: Moment
    end: Moment | None
    """None: still open at the last event."""
    namespace: str = ""
    """Of the payer, else of the job; decides the scope."""
    cluster_queue: str = ""
    payer: str = ""
    """`<Workload UID>#<n>`: the n-th hold of that Workload. Empty: nobody pays."""
    peak: Mapping[str, int] = field(default_factory=dict)
    resource_seconds: Mapping[str, float] = field(default_factory=dict)
    """Integral of the amount over the window, per resource: millicore-seconds for cpu, byte-seconds, …"""
    seconds: tuple[float, float] = (0.0, 0.0)
    """Length of the window: [at least, at most]."""
    order_proof: Literal["rev", "arrival"] = "rev"
    part_of: str = ""
    """The finding that already accounts for this one; kept in the record, not raised."""
    over_quota: Mapping[str, int] = field(default_factory=dict)
    """The most of the peak by which a quota was exceeded meanwhile: use beyond it that this finding explains."""
