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

from raykueue.model.gates import BY_NAME
from raykueue.model.versions import Pair
from raykueue.report.gate.command import _versions
from raykueue.report.gate.required import TestSet, parse
from tests.ci.scripts import ROOT

REQUIRED = parse((ROOT / "ci" / "required.toml").read_text("utf-8"), "ci/required.toml")
VERSIONS = _versions()
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


def required(sets: Iterable[TestSet], pair: dict[str, str]) -> list[str]:
    return [test for tests in sets for test in tests.ids(pair)]


@pytest.mark.parametrize("kuberay", sorted(VERSIONS.ray))
def test_every_test_of_a_profile_is_in_one_set_and_no_other_is(kuberay: str) -> None:
    found = collections(kuberay)
    assert len(found) == 2 * len(VERSIONS.named_by)
    for one in found:
        sets = [tests for name, tests in REQUIRED.sets.items() if (name == "smoke") == (one.profile == "smoke")]
        ids = required(sets, one.pair.versions())
        assert sorted(set(ids)) == sorted(ids), one.pair
        assert set(ids) == {test["id"] for test in one.tests}, f"{one.profile} on {one.pair}"


@pytest.mark.parametrize("kuberay", sorted(VERSIONS.ray))
def test_what_must_run_on_a_pair_applies_to_it(kuberay: str) -> None:
    on_nodes = set(REQUIRED.sets["nodes"].tests)
    for one in collections(kuberay):
        must = {test for tests in REQUIRED.sets.values() if tests.must_run for test in tests.ids(one.pair.versions())}
        assert {test["id"] for test in one.tests if not test["applies"]}.isdisjoint(must - on_nodes), one.pair


@pytest.mark.parametrize("kuberay", sorted(VERSIONS.ray))
def test_no_test_asks_of_a_kuberay_what_it_does_not_know(kuberay: str) -> None:
    asked = {
        (gate, test["id"])
        for one in collections(kuberay)
        for test in one.tests
        for gate, asks in ASKS.items()
        if test["applies"] and not BY_NAME[gate].open_for(one.pair.versions()) and any(map(asks, test["rayjobs"]))
    }
    assert asked == set()


def test_what_is_asked_of_kuberay_is_seen_in_the_suites() -> None:
    """So that the test above means something."""
    seen = {
        gate
        for kuberay in ("1.4.2", "1.6.2")
        for one in collections(kuberay)
        for gate, asks in ASKS.items()
        if any(any(map(asks, test["rayjobs"])) for test in one.tests if test["applies"])
    }
    assert seen == set(ASKS)


def test_every_set_but_smoke_is_required_of_what_upstream_pins() -> None:
    for name in ("pull-request", "nightly", "release"):
        first = REQUIRED.gate(name).requirements[0]
        assert {one.name for one in first.sets} == set(REQUIRED.sets) - {"smoke", "nodes"}


def test_what_only_a_kubelet_can_answer_is_required_every_night() -> None:
    (kind,) = [one for one in REQUIRED.gate("nightly").requirements if one.backend == "kind"]
    assert "nodes" in {one.name for one in kind.sets}


def test_every_pair_that_is_served_is_required_at_night() -> None:
    cells = REQUIRED.gate("nightly").cells(VERSIONS, ())
    assert {(cell.kueue, cell.kuberay) for cell in cells} == {(pair.kueue, pair.kuberay) for pair in VERSIONS.pairs}
