from __future__ import annotations

import datetime
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

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
from raykueue.run.explanations import known_issues
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


def columns(issue: KnownIssue) -> tuple[str, str]:
    """Which versions have it, and the first that do not, as the table says them."""
    cells = unescape(table([Proof(issue, found=["0.17.1+1.6.2"])]).splitlines()[4]).split(" | ")
    return cells[1], cells[2]


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
        "| `KR-1` https://example.org/1 | Kueue &lt; 0.18.0 | Kueue 0.18.0 | 1: 0.17.1+1.6.2 | - | 1: 0.18.3+1.6.2 |"
    )


BACKPORTED = (Range("", "0.17.7"), Range("0.18.0-0", "0.18.3"))
AGAIN = (Range("0.16.6", "0.16.8"), Range("0.17.1", "0.17.3"), Range("0.18.0"))


@pytest.mark.parametrize(
    ("kueue", "kuberay", "versions", "fixed"),
    [
        ((), (), "every version", "never"),
        ((), (Range("1.5.0"),), "KubeRay >= 1.5.0", "never"),
        (BACKPORTED, (), "Kueue < 0.17.7 or >= 0.18.0 and < 0.18.3", "Kueue 0.17.7, 0.18.3"),
        (
            BACKPORTED,
            (Range("1.5.0"),),
            "Kueue < 0.17.7 or >= 0.18.0 and < 0.18.3 with KubeRay >= 1.5.0",
            "Kueue 0.17.7, 0.18.3",
        ),
        (
            AGAIN,
            (),
            "Kueue >= 0.16.6 and < 0.16.8 or >= 0.17.1 and < 0.17.3 or >= 0.18.0",
            "Kueue 0.16.8, 0.17.3, never from 0.18.0 on",
        ),
        (
            (Range("", "0.17.7"),),
            (Range("1.5.0", "1.6.1"),),
            "Kueue < 0.17.7 with KubeRay >= 1.5.0 and < 1.6.1",
            "Kueue 0.17.7; KubeRay 1.6.1",
        ),
    ],
)
def test_the_table_says_which_release_of_each_line_does_not_have_it_any_more(
    kueue: tuple[Range, ...], kuberay: tuple[Range, ...], versions: str, fixed: str
) -> None:
    assert columns(replace(ISSUE, kueue=kueue, kuberay=kuberay)) == (versions, fixed)


def test_an_entry_that_names_gates_has_the_versions_that_have_or_lack_them() -> None:
    found = {issue.id: columns(issue) for issue in known_issues()}
    assert found["deleted-while-it-is-admitted"] == (
        "Kueue >= 0.16.6 and < 0.16.8 or >= 0.17.1 and < 0.17.3 or >= 0.18.0",
        "Kueue 0.16.8, 0.17.3, never from 0.18.0 on",
    )
    assert found["head-kept-and-unpaid"] == (
        "Kueue < 0.15.0 or >= 0.15.3 and < 0.15.4 or >= 0.16.0 and < 0.16.1",
        "Kueue 0.15.0, 0.15.4, 0.16.1",
    )
    assert found["invalid-job-keeps-its-quota"] == (
        "Kueue >= 0.11.0 and < 0.18.5 or >= 0.19.0 and < 0.19.1 with KubeRay >= 1.5.0",
        "Kueue 0.18.5, 0.19.1",
    )


FOLLOWS = "suites/test_next.py::test_the_next_job_follows[a-row]"


def test_where_a_fixed_version_has_the_row_in_another_test_its_silence_there_counts() -> None:
    issue = replace(ISSUE, absent_in=("suites/test_next.py::*follows*",))
    (proof,) = proofs([came_to(OLD, test=FOLLOWS), came_to(NEW, test=FOLLOWS)], [issue])
    assert (proof.not_seen, proof.silent) == ([], ["0.18.3+1.6.2"])
    (proof,) = proofs([came_to(NEW, finding(), verdict=Verdict.FAIL, test=FOLLOWS)], [issue])
    assert proof.surprising == ["0.18.3+1.6.2"]


def test_a_row_of_the_next_job_is_in_one_test_where_its_head_stays_and_in_the_other_where_it_goes() -> None:
    (issue,) = [one for one in known_issues() if one.id == "head-kept-and-quota-handed-over"]
    suite = "suites/deletion_policy/test_next_job.py::test_the_next_job_{}[delete-workers-on-success-queued-http]"
    old, new = Pair("1.34.4", "0.14.0", "1.5.1"), Pair("1.34.4", "0.19.2", "1.5.1")
    stays, goes = came_to(old, test=suite.format("finds_no_room")), came_to(new, test=suite.format("follows"))
    (proof,) = proofs([stays, goes], [issue])
    assert (proof.not_seen, proof.silent) == (["0.14.0+1.5.1"], ["0.19.2+1.5.1"])
