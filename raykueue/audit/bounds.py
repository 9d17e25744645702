"""How long and how much a finding may be, to be explained by something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from raykueue.audit.formulas import check, evaluate
from raykueue.model.findings import Finding
from raykueue.model.quantities import Quantity, amount, describe

Formula: TypeAlias = str | float
"""Seconds: a number, or a formula over T_gc, T_kr, …, `g` (largest grace of the job's pods) and `ttl`."""

FACTS = ("g", "ttl")
_SLACK = 1e-6  # seconds: a formula is a float, a window is not


@dataclass(frozen=True, slots=True)
class Bounds:
    """From - to; what is missing is not bounded. Amounts are of the peak, per resource."""

    at_least_seconds: Formula | None = None
    at_most_seconds: Formula | None = None
    at_least: Mapping[str, int] = field(default_factory=dict)
    at_most: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, body: Mapping[str, Any], names: tuple[str, ...]) -> Bounds:
        """From a table of a file. Raises ValueError for a malformed formula or quantity."""
        for key in ("at_least_seconds", "at_most_seconds"):
            if key in body:
                check(body[key], names)
        return cls(
            body.get("at_least_seconds"),
            body.get("at_most_seconds"),
            _amounts(body.get("at_least", {})),
            _amounts(body.get("at_most", {})),
        )

    def why_not(self, finding: Finding, names: Mapping[str, float]) -> str:
        """What about the finding is out of bounds; empty if nothing is."""
        least, most = finding.seconds
        if self.at_least_seconds is not None:
            wanted = evaluate(self.at_least_seconds, names)
            if most < wanted - _SLACK:
                return f"it must last at least {_told(self.at_least_seconds, wanted)}, it lasted {most:g} s"
        if self.at_most_seconds is not None:
            allowed = evaluate(self.at_most_seconds, names)
            if least > allowed + _SLACK:
                return f"it may last at most {_told(self.at_most_seconds, allowed)}, it lasted {least:g} s"
        for resource, value in self.at_least.items():
            if finding.peak.get(resource, 0) < value:
                seen = describe(resource, finding.peak.get(resource, 0))
                return f"it must be at least {describe(resource, value)}, it was {seen}"
        for resource, value in self.at_most.items():
            if finding.peak.get(resource, 0) > value:
                seen = describe(resource, finding.peak[resource])
                return f"it may be at most {describe(resource, value)}, it was {seen}"
        return ""

    @property
    def demands(self) -> bool:
        """Some lower bound is above zero, or may be."""
        seconds = self.at_least_seconds
        return bool(seconds) or any(value > 0 for value in self.at_least.values())


def _told(formula: Formula, seconds: float) -> str:
    return f"{seconds:g} s" + (f" ({formula})" if isinstance(formula, str) else "")


def _amounts(quantities: Mapping[str, Quantity]) -> dict[str, int]:
    return {resource: amount(resource, quantity) for resource, quantity in quantities.items()}
