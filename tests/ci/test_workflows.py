"""What every workflow of this repository keeps to, beyond what actionlint and zizmor look for."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci.scripts import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTIONS = sorted((GITHUB / "actions").glob("*/action.yml"))
PINNED = re.compile(r"^\s*(?:- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
SCRIPT = re.compile(r"^(ci/jobs/[a-z]+)\b")

Body = dict[str, Any]


def body(path: Path) -> Body:
    found: Body = yaml.safe_load(path.read_text("utf-8"))
    return found


JOBS = [pytest.param(job, id=f"{path.stem}/{name}") for path in WORKFLOWS for name, job in body(path)["jobs"].items()]


def steps() -> list[tuple[str, Body]]:
    found = [(path.stem, step) for path in WORKFLOWS for job in body(path)["jobs"].values() for step in job["steps"]]
    return found + [(path.parent.name, step) for path in ACTIONS for step in body(path)["runs"]["steps"]]


def test_the_three_workflows_are_there() -> None:
    assert [path.stem for path in WORKFLOWS] == ["nightly", "pull-request", "release-gate"]


@pytest.mark.parametrize("path", [*WORKFLOWS, *ACTIONS], ids=lambda path: path.stem)
def test_actions_of_others_are_pinned_by_commit_and_their_tag_is_told(path: Path) -> None:
    used = [line for line in path.read_text("utf-8").splitlines() if re.match(r"\s*(- )?uses:", line)]
    foreign = [line for line in used if "uses: ./" not in line]
    assert foreign
    assert [line for line in foreign if not PINNED.match(line)] == []


def test_an_action_is_at_one_commit_everywhere() -> None:
    found: dict[str, set[str]] = {}
    for _, step in steps():
        if "@" in step.get("uses", ""):
            action, _, commit = step["uses"].partition("@")
            found.setdefault("/".join(action.split("/")[:2]), set()).add(commit)
    assert {action: commits for action, commits in found.items() if len(commits) > 1} == {}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_gives_nothing_away_and_runs_once_at_a_time(path: Path) -> None:
    workflow = body(path)
    assert workflow["permissions"] == {}
    assert workflow["concurrency"]["group"]
    assert "secrets" not in path.read_text("utf-8")


@pytest.mark.parametrize("job", JOBS)
def test_a_job_reads_only_and_ends(job: Body) -> None:
    assert job["permissions"] == {"contents": "read"}
    assert 0 < job["timeout-minutes"] <= 180
    assert job["runs-on"] == "ubuntu-24.04"
    assert job.get("strategy", {}).get("fail-fast", False) is False


def test_a_step_runs_one_script_of_this_repository_which_is_there() -> None:
    scripts = [step["run"] for _, step in steps() if "run" in step]
    for run in scripts:
        script = SCRIPT.match(run)
        assert script is not None, run
        assert len(run.splitlines()) == 1
        assert os.access(ROOT / script[1], os.X_OK), run
    used = {match[1] for match in map(SCRIPT.match, scripts) if match}
    assert used == {f"ci/jobs/{path.name}" for path in (ROOT / "ci" / "jobs").iterdir() if path.is_file()}


def test_nothing_is_pasted_into_a_shell_or_left_in_a_checkout() -> None:
    for _, step in steps():
        assert "${{" not in step.get("run", "")
        if "actions/checkout@" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False


def test_evidence_is_uploaded_whatever_came_of_the_run() -> None:
    uploads = [(name, step) for name, step in steps() if "upload-artifact" in step.get("uses", "")]
    assert {name for name, _ in uploads} == {path.stem for path in WORKFLOWS}
    collected = [step for _, step in steps() if step.get("run") == "ci/jobs/evidence"]
    assert all(step["if"] == "always()" for step in [*(step for _, step in uploads), *collected])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_the_gate_waits_for_every_other_job_and_runs_whatever_came_of_them(path: Path) -> None:
    every = body(path)["jobs"]
    gate = every.pop("gate")
    needs = [gate["needs"]] if isinstance(gate["needs"], str) else gate["needs"]
    assert set(needs) == set(every)
    assert gate["if"] == "always()"
    deciding = [step for step in gate["steps"] if step.get("run", "").startswith("ci/jobs/gate ")]
    assert deciding[0]["env"]["NEEDS"] == "${{ toJSON(needs) }}"


def test_a_night_is_compared_unless_somebody_starts_it_by_hand_and_says_otherwise() -> None:
    gate = body(GITHUB / "workflows" / "nightly.yml")["jobs"]["gate"]["steps"]
    (deciding,) = [step for step in gate if step.get("run", "").startswith("ci/jobs/gate ")]
    assert "--baseline baseline" in deciding["run"]
    assert deciding["env"]["BEGIN_ANEW"] == "${{ github.event_name == 'workflow_dispatch' && !inputs.baseline }}"
    (restoring,) = [step for step in gate if "actions/cache/restore@" in step.get("uses", "")]
    assert restoring["with"]["path"] == "baseline"
    assert restoring["if"] == "github.event_name != 'workflow_dispatch' || inputs.baseline"


def test_only_a_night_can_begin_anew() -> None:
    assert {name for name, step in steps() if "BEGIN_ANEW" in step.get("env", {})} == {"nightly"}


def test_the_checks_of_gates_are_told_apart_by_their_names_which_the_guide_names() -> None:
    """Those of all workflows are in one list, where a branch's protection picks one."""
    names = {path.stem: body(path)["jobs"]["gate"]["name"] for path in WORKFLOWS}
    assert names == {
        "nightly": "gate (nightly)",
        "pull-request": "gate (pull request)",
        "release-gate": "gate (release)",
    }
    guide = (ROOT / "docs" / "release-gate.md").read_text("utf-8")
    assert f"Require the check `{names['pull-request']}`" in guide
    assert f"`raykueue / {names['release-gate']}`" in guide


def test_gates_that_workflows_ask_for_exist() -> None:
    from raykueue.report.gate.required import parse

    known = parse((ROOT / "ci" / "required.toml").read_text("utf-8")).gates
    runs = [step["run"].split()[1] for _, step in steps() if step.get("run", "").startswith("ci/jobs/gate ")]
    assert set(runs) == set(known)


def test_the_release_gate_checks_out_the_suite_and_not_its_caller() -> None:
    checkouts = [
        step["with"] for name, step in steps() if name == "release-gate" and "actions/checkout" in step.get("uses", "")
    ]
    assert len(checkouts) == 2
    for options in checkouts:
        assert options["repository"] == "${{ job.workflow_repository }}"
        assert options["ref"] == "${{ job.workflow_sha }}"
