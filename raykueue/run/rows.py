"""A row of the deletion table, ready for a test: its manifest, what it is brought to, and what is expected of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raykueue.model.deletion.dimensions import Outcome, Row
from raykueue.model.deletion.expected import Expected, Part
from raykueue.model.deletion.laws import expected, needs_gate_set
from raykueue.model.deletion.rendering import FILES, rendered
from raykueue.model.deletion.selection import core, full, handing_over, in_order, smoke
from raykueue.run.manifests import load_one
from raykueue.run.states import Initializing, Running, State

PODS = frozenset({Part.HEAD, Part.WORKERS})


@dataclass(frozen=True, slots=True)
class Case:
    """One row on one pair."""

    row: Row
    expected: Expected
    profile: str
    """The smallest that has it: smoke, core or full."""
    in_core: bool
    gate: bool | None
    """How KubeRay's feature gate RayJobDeletionPolicy must be set; None: as it is by default."""

    def manifest(self) -> dict[str, Any]:
        """Its RayJob, from the file in `manifests/` for its mode."""
        return rendered(self.row, load_one(FILES[self.row.mode], "RayJob"))

    @property
    def outcome(self) -> Outcome:
        """How it is brought to its end."""
        return self.row.outcome

    @property
    def suspended(self) -> bool:
        """Whether it is suspended and resumed before."""
        return self.row.suspended

    @property
    def start(self) -> State:
        """The state in which it is, before it is brought to its end."""
        return Initializing if self.row.outcome is Outcome.DEADLINE_INITIALIZING else Running


def cases(pair: Mapping[str, str], profile: str) -> tuple[Case, ...]:
    """Every row that the profile or a smaller one runs on this pair, the longest first; the same in every process."""
    return _cases(pair["kueue"], pair["kuberay"], profile == "full")


def leaving(pair: Mapping[str, str]) -> list[Case]:
    """Rows whose pods go after the end, so that the next in the queue finds room."""
    return [case for case in _handing_over(pair) if not case.expected.kept & PODS]


def staying(pair: Mapping[str, str]) -> list[Case]:
    """Rows some of whose pods stay after the end, so that the next in the queue finds none."""
    return [case for case in _handing_over(pair) if case.expected.kept & PODS]


def _handing_over(pair: Mapping[str, str]) -> list[Case]:
    return [_case(row, pair, "core") for row in handing_over(pair)]


@functools.cache
def _cases(kueue: str, kuberay: str, everything: bool) -> tuple[Case, ...]:
    pair = {"kueue": kueue, "kuberay": kuberay}
    quick, usual = set(smoke(pair)), set(core(pair))
    rows = full(pair) if everything else dict.fromkeys((*smoke(pair), *core(pair)))
    return tuple(
        _case(row, pair, "smoke" if row in quick else "core" if row in usual else "full", in_core=row in usual)
        for row in in_order(rows, pair)
    )


def _case(row: Row, pair: Mapping[str, str], profile: str, *, in_core: bool = True) -> Case:
    return Case(row, expected(row, pair), profile, in_core, needs_gate_set(row, pair))
