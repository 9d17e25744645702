"""ci/required.toml against what the suites really collect."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from raykueue.model.versions import Pair
from raykueue.report.gate.command import _versions
from raykueue.report.gate.required import TestSet, parse
from tests.ci.scripts import ROOT

REQUIRED = parse((ROOT / "ci" / "required.toml").read_text("utf-8"), "ci/required.toml")
VERSIONS = _versions()
OLD = VERSIONS.pair(kueue="0.10.1", kuberay="1.3.2")


def collected(kueue: str, kuberay: str, profile: str) -> set[str]:
    """Ids of the suites' tests, as pytest collects them for this pair."""
    command = [str(Path(sys.executable).with_name("pytest")), "suites", "--collect-only", "-q", "-n", "0"]
    options = [f"--profile={profile}", f"--kueue={kueue}", f"--kuberay={kuberay}"]
    ended = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    return {line for line in ended.stdout.splitlines() if line.startswith("suites/")}


def required(sets: Iterable[TestSet], pair: dict[str, str]) -> list[str]:
    return [test for tests in sets for test in tests.ids(pair)]


@pytest.mark.parametrize(
    ("profile", "pair"), [("core", VERSIONS.default), ("core", OLD), ("smoke", VERSIONS.default)], ids=str
)
def test_every_test_of_a_profile_is_in_one_set_and_no_other_is(profile: str, pair: Pair) -> None:
    versions = pair.versions()
    sets = [one for name, one in REQUIRED.sets.items() if (name == "smoke") == (profile == "smoke")]
    ids = required(sets, versions)
    assert sorted(set(ids)) == sorted(ids)
    assert set(ids) == collected(versions["kueue"], versions["kuberay"], profile)


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
