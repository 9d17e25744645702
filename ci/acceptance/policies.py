"""Checks: what the suite about deletion policies promises."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ci.acceptance.ground import Ground, expect

SUITE = "deletion_policy"
OLD = ("--kuberay", "1.3.2", "--kueue", "0.10.1")
HEAD_KEPT = "delete-workers-by-policy-on-success-queued-k8sjob"
HEAD_CORES = 1.0
ISSUE = "https://github.com/kubernetes-sigs/kueue/issues/3994"


def every_row_of_the_default_pair_is_green_or_known(ground: Ground) -> str:
    """Without Docker, from the root, selected by name."""
    outcome = ground.run("pytest", "-k", SUITE)
    records = _records(ground)
    verdicts = {record["verdict"] for record in records}
    expect(verdicts == {"pass", "known"}, f"verdicts are {sorted(verdicts)}, expected pass and known")
    expect(any("test_table" in record["id"] for record in records), "no row of the table ran")
    expect(outcome.last_line, "it said nothing at the end")
    return f"{len(records)} tests in {outcome.seconds:.0f} s"


def rows_are_selected_by_reading(ground: Ground) -> str:
    """`workers` selects what is about workers, and nothing else."""
    outcome = ground.run("pytest", "--collect-only", "-q", "-k", f"{SUITE} and workers")
    ids = [line for line in outcome.text.splitlines() if line.startswith("suites/")]
    expect(ids, "it selected nothing")
    wrong = [one for one in ids if "workers" not in one]
    expect(not wrong, f"it selected {wrong[:1]}")
    return f"{len(ids)} tests"


def what_delete_workers_costs_is_in_the_summary(ground: Ground) -> str:
    """The head's seconds and core-seconds, and how long the next job waited."""
    ground.run("pytest", "-k", f"{SUITE} and next_job and workers")
    summary = (_latest(ground) / "summary.md").read_text(encoding="utf-8")
    line = next((line for line in summary.splitlines() if line.startswith("| delete-workers-on-success")), "")
    found = re.search(r"\| (?P<seconds>[\d.]+) s \| (?P<cores>[\d.]+) core-s.*\| (?P<ms>\d+) ms \|", line)
    expect(found, f"the summary tells no cost of DeleteWorkers: {line!r}")
    assert found is not None
    expect(float(found["seconds"]) > 0 and float(found["cores"]) > 0, f"it costs nothing: {line!r}")
    return line


def on_the_old_pair_the_kept_head_is_known_to_be_unpaid_without_end(ground: Ground) -> str:
    """KubeRay 1.3.2 with Kueue 0.10.1: kueue#3994. Builds both, if they are not cached."""
    outcome = ground.run("pytest", *OLD, "-k", f"{SUITE} and table and {HEAD_KEPT}", patience=3600.0)
    (record,) = _records(ground)
    expect(record["verdict"] == "known", f"the verdict is {record['verdict']}")
    (finding,) = [one for one in record["findings"] if one["explained_by"].startswith("known:")]
    expect(finding["cause"] == "finished/head-kept", f"the cause is {finding['cause']}")
    unpaid = finding["resource_seconds"].get("cpu", 0) / 1000
    expect(unpaid >= finding["seconds"][0] * HEAD_CORES, f"unpaid are {unpaid:.1f} core-s, expected the head's")
    expect(ISSUE in outcome.text, f"it does not name {ISSUE}")
    return str(finding["text"])


def an_expectation_turned_over_makes_its_row_red(ground: Ground) -> str:
    """One test for each kind, on recorded journals; and the evidence of every known issue is replayed."""
    return ground.run("pytest", "-q", "-n", "0", "tests/deletion", "tests/evidence").last_line


def the_page_for_people_is_current(ground: Ground) -> str:
    """docs/deletion-policies.md."""
    return ground.run("raykueue", "docs", "deletion-policies", "--check", says="is current").last_line


def _latest(ground: Ground) -> Path:
    return ground.root / "reports" / "latest"


def _records(ground: Ground) -> list[dict[str, Any]]:
    lines = (_latest(ground) / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if not record["id"].startswith("run::")]
