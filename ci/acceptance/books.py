"""Checks: what the ledger promises."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ci.acceptance.ground import Ground, expect

FAILING = '''"""A suite that fails on purpose."""

from raykueue.run.states import Complete, Running


def test_that_does_not_expect_what_it_forces(queue, submit, sabotage):
    """A stray pod outlives the job, so that more is used unpaid than was ever charged; nobody is told."""
    job = submit("rayjob.yaml").until(Running)
    sabotage.pod_beside(job, cpu="1")
    job.finish().until(Complete)
'''


def the_audit_is_tested_without_a_cluster(ground: Ground) -> str:
    """In seconds, with 200 examples for each property."""
    outcome = ground.run("pytest", "-q", "-n", "2", "tests/audit")
    return f"{outcome.last_line.strip('= ')}"


def every_example_of_the_rules_is_a_test(ground: Ground) -> str:
    """The table in docs/rules.md, held to the tests."""
    return ground.run("pytest", "-q", "-n", "0", "tests/docs").last_line


def saboteurs_are_found(ground: Ground) -> str:
    """Whatever is done behind the products' backs."""
    ground.run("pytest", "suites/selfproof", "--profile", "full", says="GREEN")
    return "suites/selfproof, profile full"


def the_journal_of_a_failing_run_replays_to_the_same_findings(ground: Ground) -> str:
    """The same ids in the record and in the replay."""
    suite = ground.root / "suites" / "scratch" / "test_fails.py"
    suite.parent.mkdir()
    suite.write_text(FAILING)
    try:
        ground.run("pytest", str(suite.parent), "-n", "0", code=1)
    finally:
        suite.unlink()
        suite.parent.rmdir()
    latest = ground.root / "reports" / "latest"
    (record,) = [json.loads(line) for line in (latest / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    replayed = ground.run("raykueue", "replay", str(latest / record["journal"]), "--json", code=1)
    told = {one["id"] for one in record["findings"]}
    expect(told, "the record has no finding")
    missing = [one for one in told if one not in replayed.text]
    expect(not missing, f"the replay lacks {missing} of {sorted(told)}")
    return f"{len(told)} findings"


def every_experiment_has_its_answer(ground: Ground) -> str:
    """In docs/experiments.md."""
    page = (ground.root / "docs" / "experiments.md").read_text(encoding="utf-8")
    scripts = sorted(path.name for path in Path(ground.root / "ci" / "experiments").iterdir() if path.is_file())
    for script in scripts:
        row = re.search(rf"^\| \[{script}\].*\|(?P<answer>[^|]*)\|$", page, re.MULTILINE)
        expect(row is not None and row["answer"].strip(), f"{script} has no answer")
    return f"{len(scripts)} experiments"


def properties_hold_for_two_thousand_examples(ground: Ground) -> str:
    """`ci/properties`."""
    return ground.run("ci/properties", patience=3600.0).last_line
