from __future__ import annotations

from typing import Any

import pytest

from raykueue.model.events import Moment
from raykueue.model.findings import Finding, Verdict
from raykueue.report.costs import Cost, costs, table
from raykueue.report.record import JudgedFinding, Record

NEXT = "suites/deletion_policy/test_next_job.py::test_the_next_job_follows[{}]"


def finding(cause: str = "finished/clean-up", seconds: float = 2.0, **unpaid: float) -> Finding:
    begin, end = Moment(1, 0), Moment(2, int(seconds * 1e9))
    return Finding(
        "f1", "no-survivors", "hazard", cause, "told", (), begin, end, resource_seconds=unpaid, seconds=(0.0, seconds)
    )


def record(row: str, *found: JudgedFinding, verdict: Verdict = Verdict.PASS, ms: float | None = None) -> Record:
    moments = {} if ms is None else {"scheduled after admitted": ms}
    return Record(NEXT.format(row), "next_job", "sentence", verdict, "now", findings=found, moments=moments)


def test_a_cost_is_what_the_ended_job_left_unpaid_and_what_the_next_one_waited() -> None:
    mine = JudgedFinding(finding(seconds=3.0, cpu=6000.0, memory=2.0**31), "allowance:cleaned-up-after-the-end")
    cleaned_up = JudgedFinding(finding("owner-deleted", seconds=60.0, cpu=9e9), "allowance:job-deleted")
    assert costs([record("shutdown", mine, cleaned_up, ms=420.0)]) == [
        Cost("shutdown", 3.0, {"cpu": 6000.0, "memory": 2.0**31}, 0.0, 420.0)
    ]


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.INFRA, Verdict.SKIPPED, Verdict.NOT_APPLICABLE])
def test_what_was_not_judged_or_failed_costs_nothing_that_can_be_told(verdict: Verdict) -> None:
    assert costs([record("shutdown", verdict=verdict)]) == []


def test_other_suites_cost_nothing() -> None:
    other = Record("suites/walkthrough/test_deploy.py::test_it[shutdown]", "deploy", "sentence", Verdict.PASS, "now")
    assert costs([other]) == []
    assert table([]) == ""


def test_the_table_is_for_people() -> None:
    known = JudgedFinding(finding("finished/no-policy", 6.0, cpu=12000.0), "known:policy-ignores-a-stopped-job")
    text = table(
        costs(
            [
                record("stop", known, verdict=Verdict.KNOWN),
                record("plain", JudgedFinding(finding(cpu=500.0, memory=2.0**30), "expects"), ms=1234.5),
            ]
        )
    )
    lines = text.splitlines()
    assert lines[2] == "| plain | 2.0 s | 0.5 core-s, 1.0 GiB-s | 0.0 s | 1234 ms |"
    assert lines[3].startswith(
        "| stop (known: policy-ignores-a-stopped-job) | 6.0 s until it was deleted by hand | 12.0"
    )
    assert lines[3].endswith("| never |")


@pytest.mark.parametrize("waited", [None, 42.0])
def test_a_cost_survives_json(waited: Any) -> None:
    cost = Cost("row", 1.25, {"cpu": 1000.0}, 0.5, waited, "known")
    assert Cost.from_json(cost.to_json()) == cost
