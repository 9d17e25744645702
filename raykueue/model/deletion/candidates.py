"""Every row that makes sense, on one pair: what a selection chooses from."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from raykueue.model.deletion.dimensions import TTL_SECONDS, Mode, Outcome, Policy, Row, Shape
from raykueue.model.deletion.expected import Refusal
from raykueue.model.deletion.laws import acts, expected
from raykueue.model.deletion.mistakes import MISTAKES
from raykueue.model.gates import gate

_SHAPE_POLICIES = {
    Shape.SHUTDOWN: (Policy.NONE,),
    Shape.STAGES: (Policy.DELETE_SELF,),
}
_POLICIES = tuple(policy for policy in Policy if policy is not Policy.NONE)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The rows of one pair."""

    run: tuple[Row, ...]
    """They run, on this pair."""
    elsewhere: tuple[Row, ...]
    """They run, but need a gate that this pair doesn't have."""
    refused: Mapping[Refusal, Row]
    """For everybody's every refusal the first row that meets it."""


def candidates(pair: Mapping[str, str]) -> Candidates:
    """All of one pair's."""
    return _candidates(pair["kueue"], pair["kuberay"])


def main_shape(pair: Mapping[str, str]) -> Shape:
    """The shape in which this KubeRay takes a policy together with shutdownAfterJobFinishes, as Kueue wants it."""
    return Shape.POLICY if gate("legacy-deletion-policy").open_for(pair) else Shape.STRATEGY


def mistaken(name: str) -> Row:
    """The row of one mistake."""
    return Row(Policy.NONE, Shape.SHUTDOWN, queued=False, mistake=name)


@functools.cache
def _candidates(kueue: str, kuberay: str) -> Candidates:
    pair = {"kueue": kueue, "kuberay": kuberay}
    run: list[Row] = []
    elsewhere: list[Row] = []
    refused: dict[Refusal, Row] = {}
    open_gates: dict[tuple[str, ...], bool] = {}
    for row in (*_combinations(main_shape(pair)), *map(mistaken, MISTAKES)):
        about = expected(row, pair)
        if about.refusal is not None:
            refused.setdefault(about.refusal, row)
            continue
        if about.needs not in open_gates:
            open_gates[about.needs] = all(gate(name).open_for(pair) for name in about.needs)
        (run if open_gates[about.needs] else elsewhere).append(row)
    return Candidates(tuple(run), tuple(elsewhere), refused)


def _combinations(first: Shape) -> Iterator[Row]:
    """The product of all dimensions, as far as it makes sense."""
    for shape in (first, *(shape for shape in Shape if shape is not first)):
        ttls = (0,) if shape is Shape.STAGES else (0, TTL_SECONDS)
        # The gate is about the other fields than shutdownAfterJobFinishes.
        gates = (True,) if shape is Shape.SHUTDOWN else (True, False)
        for policy, outcome, queued, mode, ttl, suspended, shutdown, on in product(
            _SHAPE_POLICIES.get(shape, _POLICIES),
            Outcome,
            (True, False),
            Mode,
            ttls,
            (False, True),
            (True, False),
            gates,
        ):
            row = Row(policy, shape, outcome, queued, mode, ttl, suspended, shutdown, on)
            if _makes_sense(row):
                yield row


def _makes_sense(row: Row) -> bool:
    if row.suspended and (not row.shutdown or row.outcome is Outcome.DEADLINE_INITIALIZING):
        return False  # KubeRay suspends only what it deletes afterwards (a mistake of its own), and what runs
    if row.ttl and (not acts(row) or (not row.shutdown and not row.shape.by_rules)):
        return False  # it would wait for nothing, or is a mistake of its own
    if row.gate and not (row.shape.by_rules and row.shutdown) and (row.shutdown or not row.queued):
        return True
    # Refused, whatever becomes of the others.
    return row.outcome is Outcome.SUCCEEDED and row.mode is Mode.K8S_JOB and not row.ttl and not row.suspended
