from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest

from raykueue.model.deletion.candidates import candidates, main_shape
from raykueue.model.deletion.dimensions import Mode, Outcome, Policy, Shape
from raykueue.model.deletion.expected import Part
from raykueue.model.deletion.laws import acts, expected
from raykueue.model.deletion.mistakes import MISTAKES
from raykueue.model.deletion.selection import CORE_ROWS, core, full, handing_over, in_order, smoke
from raykueue.toolchain.lock import load_versions

PAIRS = [pytest.param(one.versions(), id=str(one)) for one in load_versions().pairs]
DEFAULT = load_versions().default.versions()


@pytest.mark.parametrize("pair", PAIRS)
def test_the_core_has_at_most_48_rows_of_which_none_is_another(pair: dict[str, str]) -> None:
    rows = core(pair)
    assert len(rows) <= CORE_ROWS
    assert len({row.id for row in rows}) == len(rows)


@pytest.mark.parametrize("pair", PAIRS)
def test_the_core_has_every_policy_with_every_outcome_queued_in_k8s_job_mode(pair: dict[str, str]) -> None:
    wanted = {(policy, outcome) for policy in Policy if policy is not Policy.DELETE_NONE for outcome in Outcome}
    rows = [row for row in core(pair) if row.queued and row.mode is Mode.K8S_JOB and row.shutdown and not row.mistake]
    there = {(row.policy, row.outcome) for row in rows if row.shape in (Shape.SHUTDOWN, main_shape(pair)) and row.gate}
    assert wanted <= there


@pytest.mark.parametrize("pair", PAIRS)
def test_the_core_has_every_refusal_that_can_be(pair: dict[str, str]) -> None:
    everybody = {expected(row, pair).refusal for row in full(pair)} | {one.refusal for one in MISTAKES.values()}
    assert {expected(row, pair).refusal for row in core(pair)} == everybody


@pytest.mark.parametrize("pair", PAIRS)
def test_the_core_has_every_value_that_runs_on_the_pair_in_a_row_that_runs(pair: dict[str, str]) -> None:
    runs = set(candidates(pair).run)
    assert {value for row in runs for value in row.values()} == {
        value for row in core(pair) if row in runs for value in row.values()
    }


@pytest.mark.parametrize("pair", PAIRS)
def test_any_two_values_that_go_together_meet_in_the_full_table(pair: dict[str, str]) -> None:
    met = {two for row in full(pair) for two in combinations(row.values(), 2)}
    for row in candidates(pair).run:
        assert set(combinations(row.values(), 2)) <= met, row.id


@pytest.mark.parametrize("pair", PAIRS)
def test_the_full_table_is_far_from_the_whole_product(pair: dict[str, str]) -> None:
    assert set(core(pair)) | set(smoke(pair)) < set(full(pair))
    assert len(full(pair)) < len(candidates(pair).run) / 3


@pytest.mark.parametrize("pair", PAIRS)
def test_what_the_pair_does_not_have_is_in_the_full_table_once_for_each_policy(pair: dict[str, str]) -> None:
    absent = [row for row in full(pair) if row in candidates(pair).elsewhere and row not in smoke(pair)]
    assert absent
    assert len({(row.policy, row.shape) for row in absent}) == len(absent)


def test_smoke_is_a_dozen_with_each_who_refuses() -> None:
    rows = smoke(DEFAULT)
    assert len(rows) == len(set(rows)) == 12
    refusals = [refusal for row in rows if (refusal := expected(row, DEFAULT).refusal)]
    assert {refusal.by for refusal in refusals} == {"API server", "Kueue", "KubeRay"}


def test_each_deleting_policy_is_in_the_core_with_a_ttl_and_without() -> None:
    seen = {(row.policy, bool(row.ttl)) for row in core(DEFAULT) if row.queued and acts(row) and row.shutdown}
    assert seen >= {(policy, ttl) for policy in Policy if policy is not Policy.DELETE_NONE for ttl in (True, False)}


def test_rows_that_wait_longest_come_first() -> None:
    ordered = in_order(core(DEFAULT), DEFAULT)
    waits = [expected(row, DEFAULT) for row in ordered]
    assert ordered[-1].mistake or waits[-1].refusal is not None
    assert [about.refusal is None for about in waits] == sorted(
        (about.refusal is None for about in waits), reverse=True
    )
    first_without_ttl = next(index for index, row in enumerate(ordered) if not row.ttl and not waits[index].watch)
    assert any(row.ttl for row in ordered[:first_without_ttl])


def test_the_next_in_the_queue_is_made_to_wait_for_rows_that_leave_and_rows_that_stay() -> None:
    kept = [expected(row, DEFAULT).kept for row in handing_over(DEFAULT)]
    assert any(Part.HEAD in parts for parts in kept)
    assert any(Part.HEAD not in parts for parts in kept)


def test_every_process_has_the_same_list() -> None:
    script = f"from raykueue.model.deletion.selection import full;print([row.id for row in full({DEFAULT!r})])"
    seeds = ("0", "1")
    lists = [
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in seeds
    ]
    assert lists[0] == lists[1]
    assert "delete-workers-on-success-queued-k8sjob" in lists[0]
