from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from raykueue.audit.bounds import Bounds
from raykueue.audit.explanations import KnownIssue
from raykueue.model.findings import Verdict
from raykueue.model.gates import Range
from raykueue.report.known import about_known_issues
from raykueue.report.record import Record
from tests.report.samples import PAIR, finding, record

NOW = datetime.datetime(2026, 11, 5, 12, tzinfo=datetime.UTC)
TESTS = ("suites/test_x.py::test_a", "suites/test_x.py::test_b")


def issue(**changes: Any) -> KnownIssue:
    values: dict[str, Any] = {
        "id": "kr-1",
        "link": "https://example.org/kr-1",
        "rule": "no-survivors",
        "cause": "job-failed",
        "tests": ("suites/test_x.py::*",),
        "occurs": "always",
        "bounds": Bounds.read({"at_most_seconds": 60}, ()),
        "review": datetime.date(2026, 12, 31),
    }
    return KnownIssue(**{**values, **changes})


def shows(test: str, verdict: Verdict = Verdict.KNOWN) -> Record:
    return record(test, verdict=verdict, reason="kr-1", findings=(finding("known:kr-1"),))


def told(records: Sequence[Record], *issues: KnownIssue, planned: Sequence[str] = TESTS) -> list[tuple[str, str]]:
    said = about_known_issues(issues or [issue()], records, planned, PAIR, NOW)
    return [(one.id, one.verdict.value) for one in said]


def test_an_issue_that_no_test_shows_any_more_is_fixed() -> None:
    assert told([record(test) for test in TESTS]) == [("run::fixed-kr-1", "fixed")]


def test_an_issue_that_one_of_its_tests_shows_is_still_there() -> None:
    assert told([record(TESTS[0]), shows(TESTS[1])]) == []
    assert told([record(TESTS[0]), shows(TESTS[1], Verdict.FAIL)]) == [], "beside another finding, which failed it"


def test_an_issue_is_not_fixed_unless_all_its_tests_were_judged() -> None:
    judged = record(TESTS[0])
    assert told([judged]) == [], "one is lost"
    for verdict in (Verdict.INFRA, Verdict.SKIPPED, Verdict.NOT_APPLICABLE):
        assert told([judged, record(TESTS[1], verdict=verdict, reason="r")]) == []
    assert told([], planned=()) == [], "none was selected"


def test_a_test_that_failed_does_not_prove_that_an_issue_is_fixed() -> None:
    failed = record(TESTS[1], verdict=Verdict.FAIL, reason="it stopped before the defect could show")
    assert told([record(TESTS[0]), failed]) == []


def test_only_the_tests_that_were_selected_count() -> None:
    assert told([record(TESTS[0])], planned=TESTS[:1]) == [("run::fixed-kr-1", "fixed")]


def test_an_issue_that_shows_sometimes_or_on_other_versions_is_never_fixed() -> None:
    passed = [record(test) for test in TESTS]
    assert told(passed, issue(occurs="sometimes")) == []
    assert told(passed, issue(kuberay=(Range(before="1.6.0"),))) == []


def test_another_issue_that_shows_proves_nothing() -> None:
    records = [shows(TESTS[0]), record(TESTS[1])]
    assert told(records, issue(), issue(id="kr-2")) == [("run::fixed-kr-2", "fixed")]


def test_an_issue_past_its_review_date_is_red_on_every_pair() -> None:
    shown = [shows(test) for test in TESTS]
    assert told(shown, issue(review=NOW.date())) == []
    yesterday = NOW.date() - datetime.timedelta(days=1)
    assert told(shown, issue(review=yesterday)) == [("run::overdue-kr-1", "fail")]
    assert told([], issue(review=yesterday, kueue=(Range(before="0.1.0"),))) == [("run::overdue-kr-1", "fail")]


def test_what_to_do_is_said() -> None:
    yesterday = NOW.date() - datetime.timedelta(days=1)
    fixed, late = about_known_issues([issue(review=yesterday)], [record(test) for test in TESTS], TESTS, PAIR, NOW)
    assert fixed.reason == (
        "kr-1 (https://example.org/kr-1) no longer shows on this pair: remove or narrow it in known-issues.toml"
    )
    assert late.reason == (
        "kr-1 (https://example.org/kr-1) was to be reviewed by 2026-11-04: look whether it is still true"
    )
    assert fixed.of_run
    assert late.of_run
