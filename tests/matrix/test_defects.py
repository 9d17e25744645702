from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from raykueue.audit.bounds import Bounds
from raykueue.audit.explanations import KnownIssue
from raykueue.matrix.defects import Proof, proofs, table
from raykueue.matrix.outcome import Outcome
from raykueue.model.findings import Verdict
from raykueue.model.gates import Range
from raykueue.model.versions import Pair
from raykueue.report.record import JudgedFinding
from raykueue.report.run_info import LoadedReport, RunInfo
from raykueue.report.verdict import counts, exit_code
from tests.report.samples import FACTS, STARTED, finding, record

ISSUE = KnownIssue(
    id="KR-1",
    link="https://example.org/1",
    rule="no-survivors",
    cause="job-*",
    tests=("suites/test_queueing.py::*",),
    occurs="always",
    bounds=Bounds(),
    review=datetime.date(2030, 1, 1),
    kueue=(Range("", "0.18.0"),),
)
OLD, NEW = Pair("1.34.4", "0.17.1", "1.6.2"), Pair("1.34.4", "0.18.3", "1.6.2")


def came_to(pair: Pair, *findings: JudgedFinding, verdict: Verdict = Verdict.PASS, **changes: Any) -> Outcome:
    one = record(findings=findings, verdict=verdict, reason="" if verdict is Verdict.PASS else "why", **changes)
    code = exit_code([one])
    number = {name.value: found for name, found in counts([one]).items()}
    run = RunInfo(pair.versions(), "embedded", STARTED, STARTED, FACTS, 1, number, interrupted=False, exit_code=code)
    return Outcome(pair, code, report=LoadedReport(Path("report"), run, (one,)))


def places(*every: Outcome) -> dict[str, list[str]]:
    (proof,) = proofs(every, [ISSUE])
    return {
        name: pairs for name, pairs in vars(proof).items() if isinstance(proof, Proof) and name != "issue" and pairs
    }


def test_it_is_found_where_it_is_and_silent_where_it_is_fixed() -> None:
    bad = came_to(OLD, finding("known:KR-1"), verdict=Verdict.KNOWN)
    assert places(bad, came_to(NEW)) == {"found": ["0.17.1+1.6.2"], "silent": ["0.18.3+1.6.2"]}


def test_what_a_range_does_not_foresee_is_told_in_both_directions() -> None:
    again = came_to(NEW, finding(), verdict=Verdict.FAIL)
    assert places(came_to(OLD), again) == {"not_seen": ["0.17.1+1.6.2"], "surprising": ["0.18.3+1.6.2"]}


def test_other_findings_and_what_something_else_explains_are_not_it() -> None:
    allowed = came_to(NEW, finding("allowance:cleaned-up"), finding(id="other", cause="evicted"), verdict=Verdict.FAIL)
    assert places(allowed) == {"silent": ["0.18.3+1.6.2"]}


def test_a_test_that_was_not_judged_or_can_not_show_it_proves_nothing() -> None:
    lost = came_to(OLD, verdict=Verdict.INFRA)
    elsewhere = came_to(NEW, test="suites/test_other.py::test_it")
    assert places(lost, elsewhere, Outcome(OLD, 3)) == {}
    assert table(proofs([lost], [ISSUE])) == ""


def test_the_table_says_which_versions_have_it() -> None:
    text = table(proofs([came_to(OLD, finding("known:KR-1"), verdict=Verdict.KNOWN), came_to(NEW)], [ISSUE]))
    row = text.splitlines()[4]
    assert row.startswith(
        "| `KR-1` https://example.org/1 | Kueue &lt; 0.18.0 | 1: 0.17.1+1.6.2 | - | 1: 0.18.3+1.6.2 |"
    )
