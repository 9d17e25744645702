"""Checks: what is promised about versions, the matrix of pairs, and what runs being what was pinned."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ci.acceptance.ground import Ground, expect, until
from ci.acceptance.matrices import PATIENCE, grid_of, judged, matrix, rows, verdicts, within
from raykueue.kube.access import load_access
from raykueue.kube.client import Api
from raykueue.run.explanations import known_issues

PAIRS, PINNED_PAIRS = 28, 5
SMOKE_SECONDS, CORE_SECONDS = 30 * 60.0, 75 * 60.0
"""What all pairs may take, with binaries built, on two cores that do nothing else."""
ALL, ALL_CORE, PINNED, FIRST, SECOND, WHOLE = (
    f"build/acceptance/{name}" for name in ("all", "all-core", "pinned", "first", "second", "whole")
)
SHARDED = ("--pairs", "pinned", "--profile", "smoke")
ONE_TEST = "suites/walkthrough/test_deploy.py"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rayjobs.ray.io"


def what_is_pinned_is_what_the_modules_say(ground: Ground) -> str:
    """Form, checksums, go.mod and samples, by `raykueue versions verify`."""
    return ground.run("raykueue", "versions", "verify", says="versions.toml is true").last_line


def the_support_table_is_current(ground: Ground) -> str:
    """Of the README."""
    return ground.run("raykueue", "docs", "support", "--check", says="is current").last_line


def every_known_issue_replays_to_exactly_its_finding(ground: Ground) -> str:
    """From its evidence journal, without a cluster; and every range says what the modules ship."""
    return ground.run("pytest", "-q", "-n", "0", "tests/evidence", "tests/model/test_signs.py").last_line


def the_workflows_are_clean(ground: Ground) -> str:
    """By actionlint and zizmor, as `make test` runs them."""
    return ground.run("ci/test", "workflows", says="workflows").last_line


def all_pairs_are_a_matrix_of_github_actions(ground: Ground) -> str:
    """28 jobs by pair, 7 by shard, which have every pair once."""
    by_pair = json.loads(ground.run("raykueue", "matrix", "list", "--github").text)["include"]
    by_shard = json.loads(ground.run("raykueue", "matrix", "list", "--github", "--shards", "7").text)["include"]
    sharded = sorted(pair for job in by_shard for pair in job["pairs"].split(","))
    expect(len(by_pair) == PAIRS, f"there are {len(by_pair)} jobs, expected one for each of {PAIRS} pairs")
    expect(sharded == sorted(job["pair"] for job in by_pair), "the shards do not have every pair once")
    return f"{len(by_pair)} pairs, {len(by_shard)} shards"


def smoke_on_all_pairs_ends_with_a_grid_without_infra(ground: Ground) -> str:
    """Every pair is judged; none is green by accident, since what failed has its exit code."""
    outcome = matrix(ground, ALL, "--pairs", "all", "--profile", "smoke")
    grid = grid_of(ground, ALL)
    expect(len(grid) == PAIRS, f"the grid has {len(grid)} rows")
    judged(grid)
    return within(grid, outcome, SMOKE_SECONDS)


def core_on_the_pinned_pairs_is_green_or_known(ground: Ground) -> str:
    """Exit code 0."""
    outcome = matrix(ground, PINNED, "--pairs", "pinned", "--profile", "core", code=0)
    grid = grid_of(ground, PINNED)
    expect(len(grid) == PINNED_PAIRS, f"the grid has {len(grid)} rows")
    judged(grid)
    expect({row["verdict"] for row in grid} == {"green"}, "a pinned pair is not green")
    return within(grid, outcome, CORE_SECONDS * len(grid) / PAIRS)


def core_on_all_pairs_ends_with_a_grid_without_infra_or_failure(ground: Ground) -> str:
    """Exit code 0: on every pair, also on those that nobody promises, what is found is known."""
    outcome = matrix(ground, ALL_CORE, "--pairs", "all", "--profile", "core", code=0)
    grid = grid_of(ground, ALL_CORE)
    expect(len(grid) == PAIRS, f"the grid has {len(grid)} rows")
    judged(grid)
    failed = [f"{row['kueue']}+{row['kuberay']}" for row in grid if row["verdict"] == "FAILED"]
    expect(not failed, f"failed: {', '.join(failed)}")
    return within(grid, outcome, CORE_SECONDS)


def two_shards_together_equal_the_whole(ground: Ground) -> str:
    """Test by test, on the pinned pairs."""
    matrix(ground, WHOLE, *SHARDED)
    run_shards(ground)
    whole = ground.run("raykueue", "matrix", "collect", WHOLE, "--out", f"{WHOLE}-grid", code=0)
    both = ground.run("raykueue", "matrix", "collect", FIRST, SECOND, "--out", f"{FIRST}-grid", code=0)
    issues = known_issues()
    alone, shared = verdicts(ground, issues, WHOLE), verdicts(ground, issues, FIRST, SECOND)
    for found in (alone, shared, rows(whole), rows(both)):
        expect(len(found) == PINNED_PAIRS, f"there are results of {len(found)} pairs, expected {PINNED_PAIRS}")
    expect(all(alone.values()), "a pair has no tests")
    expect(alone == shared, "a test came to something else in a shard")
    expect(rows(whole) == rows(both), "the two grids differ")
    return f"{len(rows(both))} pairs, the same verdicts"


def a_lost_result_makes_the_collected_verdict_red(ground: Ground) -> str:
    """A shard that is not there, one result of it, and a record that was changed: 3 each time, and it says which."""
    if not (ground.root / SECOND / "matrix.json").exists():
        run_shards(ground)
    ground.run("raykueue", "matrix", "collect", FIRST, code=3, says="shard 2/2 is lost")
    copy = ground.root / f"{SECOND}-copy"
    for damage, says in ((lose_a_pair, "there is no report"), (change_a_record, "records.jsonl")):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ground.root / SECOND, copy, symlinks=True)
        damage(copy)
        outcome = ground.run("raykueue", "matrix", "collect", FIRST, str(copy), code=3, says="INFRA")
        expect(says in outcome.text, f"after {damage.__name__} it does not say {says!r}")
    return "exit code 3"


def ctrl_c_ends_a_matrix_with_its_grid_and_resume_goes_on(ground: Ground) -> str:
    """What ran is ended and leaves nothing; the rest runs when it is resumed, and only the rest."""
    folder = "build/acceptance/resumed"
    pairs = ("--pairs", "0.19.2+1.6.2", "--profile", "smoke")
    run = ground.start("raykueue", "matrix", "run", *pairs, "--out", folder)
    run.until(ground.recording, "its recorder listens")
    run.press_ctrl_c()
    ground.finish(run, 2, "INTERRUPTED")
    expect(until(lambda: not ground.processes(), 10.0), "processes are left")
    ground.run("raykueue", "matrix", "run", "--resume", folder, says="GREEN", patience=PATIENCE)
    again = ground.run("raykueue", "matrix", "run", "--resume", folder, says="GREEN")
    expect(again.seconds < 60, f"with nothing left to do it took {again.seconds:.0f} s")
    return "interrupted, resumed, done"


def what_is_not_what_was_pinned_stops_a_run(ground: Ground) -> str:
    """A CRD that somebody changed. With --allow-drift it is tested, and the report says so."""
    up = ground.run("raykueue", "up", "--kubeconfig")
    try:
        api = Api(load_access(Path(up.last_line)))
        versions = api.get(CRD)["spec"]["versions"]
        versions[0]["schema"]["openAPIV3Schema"]["description"] = "changed by somebody"
        api.merge(CRD, {"spec": {"versions": versions}})
        run = ("pytest", ONE_TEST, "--reuse-cluster")
        ground.run(*run, code=3, says="CRD rayjobs.ray.io differs from the pinned one")
        allowed = ground.run(*run, "--allow-drift", says="what ran was not what was pinned")
        report = ground.root / "reports" / "latest" / "run.json"
        expect(json.loads(report.read_text(encoding="utf-8"))["drift"], "run.json does not say how it drifted")
    finally:
        ground.run("raykueue", "down")
    return f"exit code 3; allowed: {allowed.last_line}"


def run_shards(ground: Ground) -> None:
    """Both, anew."""
    for folder, shard in ((FIRST, "1/2"), (SECOND, "2/2")):
        matrix(ground, folder, *SHARDED, "--shard", shard)


def lose_a_pair(shard: Path) -> None:
    """As if it had never been uploaded."""
    shutil.rmtree(sorted((shard / "pairs").iterdir())[0])


def change_a_record(shard: Path) -> None:
    """As if a disk were bad, or somebody not honest."""
    records = sorted(shard.glob("pairs/*/*embedded/records.jsonl"))[0]
    records.write_text(records.read_text(encoding="utf-8").replace('"pass"', '"known"', 1), encoding="utf-8")
