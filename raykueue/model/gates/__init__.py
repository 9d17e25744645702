"""What a version can do, as data: tests ask for a gate, never for a version.

A range is half open: from `since` on, before `before`. A fix that was picked into older minors has a range for each.
Where a field, a flag or a function shows it, the ranges of Kueue's gates were read from every tag from v0.10.0 to
v0.19.2. Gates about something that can be switched say what the suite's own settings make of it: that is what runs.
"""

from __future__ import annotations

from raykueue.model.gates.definition import Gate, Product
from raykueue.model.gates.kuberay import KUBERAY
from raykueue.model.gates.kueue import KUEUE
from raykueue.model.gates.ranges import Range, both, ends, outside, within

__all__ = ["BY_NAME", "GATES", "Gate", "Product", "Range", "both", "ends", "gate", "outside", "within"]

GATES: tuple[Gate, ...] = (*KUEUE, *KUBERAY)

BY_NAME: dict[str, Gate] = {gate.name: gate for gate in GATES}


def gate(name: str) -> Gate:
    """The gate of that name. Raises KeyError that lists all names."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise KeyError(f"no gate {name!r}; there are: {', '.join(sorted(BY_NAME))}") from None
