"""What a gate is. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from raykueue.model.gates.ranges import Range, within
from raykueue.model.gates.signs import Sign

Product: TypeAlias = Literal["kueue", "kuberay", "kubernetes"]


@dataclass(frozen=True, slots=True)
class Gate:
    """One thing that some versions of a product do and others don't."""

    name: str
    product: Product
    ranges: tuple[Range, ...]
    source: str
    consequence: str
    sign: Sign | None = None
    """How it shows on a live cluster before anything runs there; None: only by what the product does."""

    def open_for(self, pair: Mapping[str, str]) -> bool:
        """The pair has it. Raises ValueError if the pair doesn't say the product's version, or says no version."""
        if self.product not in pair:
            raise ValueError(
                f"gate {self.name}: the pair {dict(pair)} doesn't say which {self.product}; add its version"
            )
        return within(pair[self.product], self.ranges)

    def refusal(self, pair: Mapping[str, str]) -> str:
        """Why a test that needs it is not applicable to the pair."""
        wanted = " or ".join(str(r) for r in self.ranges)
        return f"{self.name} needs {self.product} {wanted}, this is {pair[self.product]}: {self.consequence}"
