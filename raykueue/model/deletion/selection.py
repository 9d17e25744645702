"""Which rows are run: a dozen, at most 48, or pairwise. Never the whole product."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations

from raykueue.model.deletion.candidates import candidates, main_shape, mistaken
from raykueue.model.deletion.dimensions import TTL_SECONDS, Mode, Outcome, Policy, Row, Shape
from raykueue.model.deletion.laws import acts, expected

CORE_ROWS = 48
"""At most."""
_DELETING = (Policy.DELETE_CLUSTER, Policy.DELETE_WORKERS, Policy.DELETE_SELF)
_UNMATCHED = Row(Policy.DELETE_CLUSTER, Shape.RULES, Outcome.STOPPED, queued=False, mode=Mode.HTTP, shutdown=False)
"""Rules for success and for failure, and an end that is neither."""


def smoke(pair: Mapping[str, str]) -> tuple[Row, ...]:
    """A dozen: each policy on success, what no policy acts on, the stages, and each who refuses."""
    shape = main_shape(pair)
    return (
        Row(Policy.NONE, Shape.SHUTDOWN),
        *(Row(policy, shape) for policy in _DELETING),
        Row(Policy.DELETE_WORKERS, shape, Outcome.FAILED),
        Row(Policy.DELETE_CLUSTER, shape, Outcome.STOPPED),
        Row(Policy.NONE, Shape.SHUTDOWN, Outcome.DEADLINE_RUNNING),
        Row(Policy.DELETE_SELF, Shape.STAGES, queued=False, mode=Mode.HTTP, shutdown=False),
        Row(Policy.NONE, Shape.SHUTDOWN, shutdown=False),
        Row(Policy.DELETE_NONE, shape),
        Row(Policy.DELETE_CLUSTER, Shape.RULES),
        mistaken("both-styles"),
    )


def core(pair: Mapping[str, str]) -> tuple[Row, ...]:
    """Every policy with every outcome, queued in K8sJobMode; the stages; every refusal; every value that the pair has.

    Of the first kind every second one that deletes anything has a TTL, so that each policy and each outcome is seen
    with one and without; those without that fail are suspended and resumed before.
    """
    return _core(pair["kueue"], pair["kuberay"])


def full(pair: Mapping[str, str]) -> tuple[Row, ...]:
    """`core`, and so many more that any two values of two dimensions that go together meet in some row.

    Of what the pair doesn't have there is one row for each policy, so that the report says so.
    """
    return _full(pair["kueue"], pair["kuberay"])


def handing_over(pair: Mapping[str, str]) -> tuple[Row, ...]:
    """What the next in the queue is made to wait for: each policy, a TTL, and a job that no policy acts on.

    In HTTPMode: before Kueue 0.17.7 a submitter pod does not follow its flavor to the node.
    """
    shape = main_shape(pair)
    rows = (
        Row(Policy.NONE, Shape.SHUTDOWN),
        Row(Policy.NONE, Shape.SHUTDOWN, ttl=TTL_SECONDS),
        *(Row(policy, shape) for policy in _DELETING),
        Row(Policy.DELETE_CLUSTER, shape, Outcome.STOPPED),
    )
    return tuple(replace(row, mode=Mode.HTTP) for row in rows)


def in_order(rows: Iterable[Row], pair: Mapping[str, str]) -> list[Row]:
    """Those that take longest first, so that nobody waits for them at the end."""
    return sorted(rows, key=lambda row: -_seconds(row, pair))


@functools.cache
def _core(kueue: str, kuberay: str) -> tuple[Row, ...]:
    pair = {"kueue": kueue, "kuberay": kuberay}
    there = candidates(pair)
    policies = ((Policy.NONE, Shape.SHUTDOWN), *((policy, main_shape(pair)) for policy in _DELETING))
    chosen = [
        _spread(Row(policy, shape, outcome), (first + second) % 2 == 1)
        for first, (policy, shape) in enumerate(policies)
        for second, outcome in enumerate(Outcome)
    ]
    chosen += [
        row for row in (*smoke(pair), _UNMATCHED) if row.shape in (Shape.STAGES, Shape.RULES) and row in there.run
    ]
    seen = {value for row in chosen for value in row.values()}
    while missing := {value for row in there.run for value in row.values()} - seen:
        best = max(there.run, key=lambda row: (len(missing.intersection(row.values())), acts(row)))
        chosen.append(best)
        seen.update(best.values())
    return (*chosen, *there.refused.values())


@functools.cache
def _full(kueue: str, kuberay: str) -> tuple[Row, ...]:
    pair = {"kueue": kueue, "kuberay": kuberay}
    there = candidates(pair)
    twos = {row: frozenset(combinations(row.values(), 2)) for row in there.run}
    left = frozenset[object]().union(*twos.values())
    for row in core(pair):
        left -= twos.get(row, frozenset())
    chosen: list[Row] = []
    groups: dict[object, list[Row]] = {}
    for row in there.run:
        groups.setdefault((row.policy, row.shape, row.shutdown, row.outcome), []).append(row)
    # Policies and outcomes are most of the pairs; the other dimensions are spread over them.
    for group in groups.values():
        while gained := max((left & twos[row] for row in group), key=len):
            chosen.append(next(row for row in group if left & twos[row] == gained))
            left -= gained
    absent = {(row.policy, row.shape): row for row in reversed(there.elsewhere)}
    return tuple(dict.fromkeys((*core(pair), *smoke(pair), *chosen, *absent.values())))


def _spread(row: Row, waits: bool) -> Row:
    suspended = row.outcome is Outcome.FAILED and not waits
    return replace(row, ttl=TTL_SECONDS if waits and acts(row) else 0, suspended=suspended)


def _seconds(row: Row, pair: Mapping[str, str]) -> float:
    about = expected(row, pair)
    if about.refusal is not None:
        return 0.0
    extra = 6.0 if row.suspended or row.outcome is Outcome.RETRIES_USED_UP else 0.0
    return 1.0 + max((due.seconds for due in about.goes.values()), default=0) + about.watch + extra
