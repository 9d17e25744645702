"""ci/required.toml against what the suites really collect."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from raykueue.model.applicability import BACKENDS, doubts, excuses
from raykueue.model.deletion.laws import expected
from raykueue.model.deletion.selection import core, handing_over, smoke
from raykueue.model.gates import BY_NAME
from raykueue.model.versions import Pair
from raykueue.report.gate.command import _versions
from raykueue.report.gate.required import TestSet, parse
from tests.ci.scripts import ROOT

REQUIRED = parse((ROOT / "ci" / "required.toml").read_text("utf-8"), "ci/required.toml")
VERSIONS = _versions()
TABLES = ("suites/deletion_policy/test_table.py", "suites/deletion_policy/test_next_job.py")
ASKS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "sidecar-mode": lambda spec: spec.get("submissionMode") == "SidecarMode",
    "legacy-deletion-policy": lambda spec: "deletionPolicy" in spec,
    "deletion-strategy": lambda spec: "deletionStrategy" in spec,
    "deletion-rule-on-failed": lambda spec: any("jobDeploymentStatus" in one for one in _conditions(spec)),
}
"""Gates of KubeRay, and what a RayJob has that only these make sense of: other releases take it, and ignore it."""


@dataclass(frozen=True)
class Collection:
    """What pytest collects for one pair and profile."""

    pair: Pair
    profile: str
    tests: list[dict[str, Any]]


@functools.cache
def collections(kuberay: str) -> list[Collection]:
    """Of every pair with this KubeRay, from a process of its own."""
    command = [sys.executable, "-m", "tests.ci.collecting", kuberay, "core", "smoke"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    return [Collection(VERSIONS.pair(one["kueue"], kuberay), one["profile"], one["tests"]) for one in found]


def _conditions(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for rule in (spec.get("deletionStrategy") or {}).get("deletionRules") or ():
        yield rule["condition"]


def excused(test: Mapping[str, Any]) -> set[str]:
    """Because of what of the pair a test does not apply, whatever the cluster is."""
    return {absence for absence in test["absences"] if excuses(absence)}


def applies(test: Mapping[str, Any], pair: Pair, backend: str) -> bool:
    """Nothing that keeps it from an embedded cluster, of which all was collected, is so on this kind of cluster."""
    return all(doubts([absence], pair.versions(), backend) for absence in test["absences"])


def whatever(test: Mapping[str, Any]) -> str:
    """Its id; of a row of the deletion table, whatever the release calls what it asks for."""
    # delete-none-by-policy-… is what delete-none-… is called where the field is the older one. What either needs may be
    # there in only one of them.
    return str(test["id"]).replace("-by-policy", "") if test["id"].startswith(TABLES) else str(test["id"])


def required(sets: Iterable[TestSet], pair: dict[str, str]) -> list[str]:
    return [test for tests in sets for test in tests.ids(pair)]


@pytest.mark.parametrize("kuberay", sorted(VERSIONS.ray))
def test_every_test_of_a_profile_is_in_one_set_and_no_other_is(kuberay: str) -> None:
    found = collections(kuberay)
    assert len(found) == 2 * len(VERSIONS.named_by)
    for one in found:
        sets = [tests for name, tests in REQUIRED.sets.items() if name.startswith("smoke") == (one.profile == "smoke")]
        ids = required(sets, one.pair.versions())
        assert sorted(set(ids)) == sorted(ids), one.pair
        assert set(ids) == {test["id"] for test in one.tests}, f"{one.profile} on {one.pair}"


@pytest.mark.parametrize("kuberay", sorted(VERSIONS.ray))
def test_what_must_run_on_a_pair_applies_to_it(kuberay: str) -> None:
    for one in collections(kuberay):
        must = {test for tests in REQUIRED.sets.values() if tests.must_run for test in tests.ids(one.pair.versions())}
        assert {test["id"] for test in one.tests if excused(test)}.isdisjoint(must), one.pair


def test_what_need_not_run_does_not_apply_to_some_pair() -> None:
    """Else it must run; rows of the deletion table are another matter, since each has needs of its own."""
    absent = {
        test["id"] for kuberay in VERSIONS.ray for one in collections(kuberay) for test in one.tests if excused(test)
    }
    rest = [test for tests in REQUIRED.sets.values() if not tests.must_run for test in tests.tests if "{" not in test]
    assert [test for test in rest if test not in absent] == []


def test_every_test_applies_to_some_pair_that_is_served_on_some_kind_of_cluster() -> None:
    """One that can run nowhere is no test: nobody would see it fail."""
    every = [(one, test) for kuberay in VERSIONS.ray for one in collections(kuberay) for test in one.tests]
    able = {whatever(test) for one, test in every if any(applies(test, one.pair, kind) for kind in BACKENDS.values())}
    assert sorted({whatever(test) for _, test in every} - able) == []


@pytest.mark.parametrize("kuberay", sorted(VERSIONS.ray))
def test_a_row_of_the_deletion_table_is_excused_by_what_it_needs_and_nothing_else(kuberay: str) -> None:
    for one in collections(kuberay):
        pair = one.pair.versions()
        needs = {row.id: expected(row, pair).needs for row in (*smoke(pair), *core(pair), *handing_over(pair))}
        rows = [test for test in one.tests if test["id"].startswith(TABLES)]
        assert rows
        for test in rows:
            row = test["id"].partition("[")[2].removesuffix("]")
            assert excused(test) == {f"needs:{name}" for name in needs[row] if not BY_NAME[name].open_for(pair)}, test


@pytest.mark.parametrize("kuberay", sorted(VERSIONS.ray))
def test_no_test_asks_of_a_kuberay_what_it_does_not_know(kuberay: str) -> None:
    asked = {
        (gate, test["id"])
        for one in collections(kuberay)
        for test in one.tests
        for gate, asks in ASKS.items()
        if not test["absences"] and not BY_NAME[gate].open_for(one.pair.versions()) and any(map(asks, test["rayjobs"]))
    }
    assert asked == set()


def test_what_is_asked_of_kuberay_is_seen_in_the_suites() -> None:
    """So that the test above means something."""
    seen = {
        gate
        for kuberay in ("1.4.2", "1.6.2")
        for one in collections(kuberay)
        for gate, asks in ASKS.items()
        if any(any(map(asks, test["rayjobs"])) for test in one.tests if not test["absences"])
    }
    assert seen == set(ASKS)


def test_every_set_but_smoke_is_required_of_what_upstream_pins() -> None:
    for name in ("pull-request", "nightly", "release"):
        first = REQUIRED.gate(name).requirements[0]
        every = {one for one in REQUIRED.sets if not one.startswith(("smoke", "nodes"))}
        assert {one.name for one in first.sets} == every


def test_what_only_a_kubelet_can_answer_is_required_every_night() -> None:
    (kind,) = [one for one in REQUIRED.gate("nightly").requirements if one.backend == "kind"]
    assert {one for one in REQUIRED.sets if one.startswith("nodes")} <= {one.name for one in kind.sets}


def test_every_pair_that_is_served_is_required_at_night() -> None:
    cells = REQUIRED.gate("nightly").cells(VERSIONS, ())
    assert {(cell.kueue, cell.kuberay) for cell in cells} == {(pair.kueue, pair.kuberay) for pair in VERSIONS.pairs}
