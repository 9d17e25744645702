"""Each workflow runs what its gate requires, on every pair and kind of cluster: neither less nor more."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from raykueue.matrix.running import PAIR_SECONDS
from raykueue.matrix.selection import choose
from raykueue.model.versions import Pair
from tests.ci.test_jobs import clone, script
from tests.ci.test_required import REQUIRED, VERSIONS
from tests.ci.test_workflows import WORKFLOWS, body

__all__ = ["clone"]

NAMED = (VERSIONS.pair(kueue="0.16.2", kuberay="1.5.1"),)
"""Instead of those that somebody asks the release gate about."""
FROM_PLAN = re.compile(r"needs\.plan\.outputs\.(\w+)")
BUILD_MINUTES, EACH_MINUTES = 10, 5
"""What goes with every pair, and the controllers of each, built anew on two cores."""


@dataclass(frozen=True)
class Feed:
    """A job that leaves reports for a gate."""

    pairs: tuple[Pair, ...]
    backend: str
    profile: str
    paths: tuple[str, ...]
    minutes: int
    """After which the job is ended."""
    shards: int

    def has(self, name: str) -> bool:
        """Whether its clusters can answer what is in a set."""
        return self.backend == "kind" or not name.startswith("nodes")

    def tests(self, pair: Pair) -> set[str]:
        """What it runs on a pair: sets are what profiles collect, which another test proves."""
        smoke = self.profile == "smoke"
        sets = [one for name, one in REQUIRED.sets.items() if name.startswith("smoke") == smoke and self.has(name)]
        ids = {test for one in sets for test in one.ids(pair.versions())}
        return {test for test in ids if any(test.startswith((f"{path}/", f"{path}::")) for path in self.paths)}


def feeds(workflow: dict[str, Any], planned: dict[str, list[str]]) -> Iterator[Feed]:
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if step.get("run", "").startswith("ci/jobs/conformance "):
                yield feed(job, step, planned)


def feed(job: dict[str, Any], step: dict[str, Any], planned: dict[str, list[str]]) -> Feed:
    ours, _, theirs = step["run"].partition(" -- ")
    options, pytests = shlex.split(ours)[1:], shlex.split(theirs)
    word, plan = value(options, "--pairs"), FROM_PLAN.search(str(job.get("strategy", {}).get("matrix", "")))
    shards = 1
    if plan is not None:
        asked = planned[plan[1]]
        of = value(asked, "--pairs")
        assert word == (of if "--shards" in asked else "$PAIR"), "it runs other pairs than were planned"
        assert ("--shards" in asked) == ("--shard" in options)
        shards = int(value(asked, "--shards", "0")) or len(choose(of, VERSIONS))
        word = of
    elif word == "$PAIR":
        assert step["env"]["PAIR"] == "${{ inputs.kueue }}+${{ inputs.kuberay }}"
        word = ",".join(f"{pair.kueue}+{pair.kuberay}" for pair in NAMED)
    return Feed(
        choose(word, VERSIONS),
        value(pytests, "--cluster", "embedded"),
        value(options, "--profile", "core"),
        tuple(one for one in pytests if one.startswith("suites")) or ("suites",),
        job["timeout-minutes"],
        shards,
    )


def value(words: list[str], option: str, default: str = "") -> str:
    return words[words.index(option) + 1] if option in words else default


@pytest.fixture
def planned(clone: Path) -> dict[str, list[str]]:
    """What `ci/jobs/plan` asks for, by the name of its output."""
    lines = script(clone, "plan").stdout.splitlines()
    return {name: words.split() for name, _, words in (line.partition("=asked: ") for line in lines)}


def gate_of(workflow: dict[str, Any]) -> str:
    (name,) = [
        step["run"].split()[1]
        for step in workflow["jobs"]["gate"]["steps"]
        if step.get("run", "").startswith("ci/jobs/gate ")
    ]
    return str(name)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_its_gate_requires_and_no_more(path: Path, planned: dict[str, list[str]]) -> None:
    workflow = body(path)
    gate = REQUIRED.gate(gate_of(workflow))
    named = NAMED if any("named" in one.pairs for one in gate.requirements) else ()
    required = {
        (cell.backend, cell.kueue, cell.kuberay): set(tests) for cell, tests in gate.cells(VERSIONS, named).items()
    }
    runs: dict[tuple[str, str, str], set[str]] = {}
    for one in feeds(workflow, planned):
        for pair in one.pairs:
            runs.setdefault((one.backend, pair.kueue, pair.kuberay), set()).update(one.tests(pair))
    assert runs == required


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_is_given_the_time_that_its_pairs_may_take(path: Path, planned: dict[str, list[str]]) -> None:
    """So that each pair that hangs is ended by the matrix, which says so, and not the job, which says nothing."""
    for one in feeds(body(path), planned):
        pairs = -(-len(one.pairs) // one.shards)
        assert one.minutes >= pairs * PAIR_SECONDS[one.profile] / 60 + BUILD_MINUTES + pairs * EACH_MINUTES, one
