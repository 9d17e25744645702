"""What a gate must not open for: records that contradict themselves, or what is known about findings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from raykueue.errors import EXIT_FAILED, EXIT_INFRA, EXIT_OK
from raykueue.model.findings import Verdict
from raykueue.report.record import JudgedFinding, Record
from tests.report.gate.reports import IDS, VARYING, a_record, kinds, write
from tests.report.gate.ways import Damage, Ways, asked, stays_closed, with_changed
from tests.report.samples import finding

WAYS = Ways()
wrong = WAYS.wrong


@wrong(EXIT_FAILED, "known issue kr-1 explains finding no-survivors-1f3a (no-survivors / evicted/race), but is about")
def a_known_issue_that_explains_another_cause(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding("known:kr-1", cause="evicted/race"), verdict=Verdict.KNOWN))]


@wrong(EXIT_FAILED, "but is about no-survivors / job-failed")
def a_known_issue_that_explains_another_rule(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding("known:kr-1", rule="no-overlap"), verdict=Verdict.KNOWN))]


@wrong(EXIT_FAILED, "allowance sure explains it, which allowances.toml does not have for this pair")
def an_allowance_that_is_none(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding("allowance:sure")))]


@wrong(EXIT_FAILED, "allowance old explains it, which allowances.toml does not have for this pair")
def an_allowance_of_other_versions(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding("allowance:old", cause="evicted/race")))]


@wrong(EXIT_FAILED, "allowance evicted explains finding no-survivors-1f3a (no-survivors / job-failed), but is about")
def an_allowance_that_is_about_another_cause(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding("allowance:evicted")))]


@wrong(EXIT_FAILED, "but is about no-survivors / evicted/*")
def an_allowance_that_is_about_another_rule(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding("allowance:evicted", rule="no-overlap", cause="evicted/race")))]


@wrong(EXIT_FAILED, "is part of f9, which its record does not have")
def a_part_of_a_finding_that_is_not_there(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding(part_of="f9")))]


@wrong(EXIT_FAILED, "is part of f2, and that of itself")
def two_findings_that_are_part_of_each_other(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding(id="f1", part_of="f2"), finding(id="f2", part_of="f1")))]


@wrong(EXIT_INFRA, "is part of another finding, and explained by expects, too")
def a_part_of_a_finding_that_something_explains(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding("expects"), finding("expects", id="f2", part_of="no-survivors-1f3a")))]


@wrong(EXIT_INFRA, "its verdict is known, but no known issue explains any finding of it")
def a_known_defect_that_no_finding_shows(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", with_changed(IDS[0], verdict=Verdict.KNOWN, reason="as recorded"))]


@wrong(EXIT_INFRA, "its verdict is pass, but known issue kr-1 explains a finding of it")
def a_known_defect_that_passed(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding("known:kr-1")))]


@wrong(EXIT_INFRA, "its verdict is pass, but it has the text of a failure: AssertionError: 2 pods")
def a_test_that_passed_with_the_text_of_a_failure(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", with_changed(IDS[0], failure="AssertionError: 2 pods"))]


@wrong(EXIT_INFRA, "its verdict is known, but it has the text of a failure")
def a_known_defect_with_the_text_of_a_failure(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding("known:kr-1"), verdict=Verdict.KNOWN, failure="AssertionError"))]


@wrong(EXIT_INFRA, "its verdict is pass, but its body never ran: it has no call phase")
def a_test_that_passed_without_having_run(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", with_changed(IDS[0], phases={"setup": 0.2, "teardown": 0.1}))]


@wrong(EXIT_INFRA, "its verdict is known, but its body never ran")
def a_known_defect_of_a_test_that_never_ran(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", _found(finding("known:kr-1"), verdict=Verdict.KNOWN, phases={"setup": 0.2}))]


@wrong(EXIT_FAILED, "its verdict is fail, but its body never ran")
def a_failure_of_a_test_that_never_ran(_: Path, base: Path) -> Sequence[Path]:
    return [write(base / "other", with_changed(IDS[0], verdict=Verdict.FAIL, reason="2 pods too many", phases={}))]


@pytest.mark.parametrize(("damage", "code", "words"), WAYS.rows, ids=lambda one: getattr(one, "__name__", ""))
def test_a_gate_stays_closed_for(damage: Damage, code: int, words: str, tmp_path: Path) -> None:
    stays_closed(damage, code, words, tmp_path)


def test_a_gate_opens_for_findings_that_are_explained_by_what_there_is(tmp_path: Path) -> None:
    explained = (
        finding("known:kr-1"),
        finding("allowance:evicted", id="f1", cause="evicted/race"),
        finding("expects", id="f2"),
        finding(id="f3", part_of="f2", rule="no-overlap"),
        finding(id="f4", part_of="f3", rule="quota-respected"),
    )
    decision = asked(write(tmp_path, _found(*explained, verdict=Verdict.KNOWN)))
    assert decision.exit_code == EXIT_OK, decision.objections


@pytest.mark.parametrize("verdict", [Verdict.INFRA, Verdict.SKIPPED, Verdict.NOT_APPLICABLE])
def test_what_did_not_come_to_its_body_contradicts_nothing(verdict: Verdict, tmp_path: Path) -> None:
    changed = {"verdict": verdict, "reason": "r", "phases": {"setup": 0.2}, "failure": "a traceback"}
    assert "contradictory" not in kinds(asked(write(tmp_path, with_changed(VARYING, **changed))))


def test_what_is_about_the_run_needs_no_body(tmp_path: Path) -> None:
    every = [a_record(test) for test in (*IDS, VARYING)]
    told = a_record("run::unscoped", verdict=Verdict.FAIL, reason="a stray pod", phases={})
    decision = asked(write(tmp_path, [*every, told], planned=[one.id for one in every]))
    assert kinds(decision) == {"failed": 1}


def _found(*found: JudgedFinding, **changes: Any) -> list[Record]:
    return with_changed(IDS[0], **{"findings": found, "reason": "as recorded", **changes})
