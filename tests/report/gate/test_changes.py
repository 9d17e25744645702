from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from raykueue.errors import EXIT_INFRA, EXIT_OK, EXIT_USAGE
from raykueue.model.findings import Verdict
from raykueue.report.gate.summary import markdown
from raykueue.report.gate.text import text
from raykueue.report.record import Record
from tests.report.gate.reports import IDS, NOW, REQUIRED, VARYING, VERSIONS, a_record, answer, forge, write
from tests.report.samples import finding
from tests.report.test_known import issue

EARLIER = NOW - datetime.timedelta(days=1)
OTHER = VERSIONS.pair(kueue="0.16.2", kuberay="1.5.1")
EXTRA = "suites/x/test_x.py::test_x"


def retired(until: str) -> str:
    return REQUIRED + f'[[retired]]\ntests = ["suites/x/*"]\nwhy = "nobody needs it"\nuntil = "{until}"\n'


def passed(*more: str) -> list[Record]:
    return [a_record(test) for test in (*IDS, VARYING, *more)]


def before(base: Path, *records: Record, **facts: Any) -> Path:
    return write(base / "before", list(records) or None, started=EARLIER, **facts)


def on_kubernetes(version: str, report: Path) -> Path:
    run = json.loads((report / "run.json").read_text())
    forge(report, pair={**run["pair"], "kubernetes": version})
    return report


def told(now: list[Record], then: list[Record], base: Path) -> list[tuple[str, str]]:
    decision = answer(write(base / "now", now), baseline=before(base, *then), issues=(issue(tests=("suites/*",)),))
    return [(change.kind, str(change)) for change in decision.changes]


def test_without_a_difference_nothing_changed(tmp_path: Path) -> None:
    decision = answer(write(tmp_path / "now"), baseline=before(tmp_path))
    assert (decision.exit_code, decision.changes) == (EXIT_OK, ())


@pytest.mark.parametrize(
    ("then", "now", "kind"),
    [
        (Verdict.PASS, Verdict.FAIL, "newly failing"),
        (Verdict.FAIL, Verdict.PASS, "no longer failing"),
        (Verdict.PASS, Verdict.NOT_APPLICABLE, "newly uncovered"),
        (Verdict.FAIL, Verdict.INFRA, "newly uncovered"),
        (Verdict.SKIPPED, Verdict.PASS, "newly covered"),
        (Verdict.SKIPPED, Verdict.NOT_APPLICABLE, "other verdict"),
        (Verdict.FAIL, Verdict.FIXED, "other verdict"),
    ],
)
def test_a_verdict_that_changed_is_told(then: Verdict, now: Verdict, kind: str, tmp_path: Path) -> None:
    was, is_now = (a_record(VARYING, verdict=verdict, reason="so it is") for verdict in (then, now))
    others = [a_record(test) for test in IDS]
    assert told([*others, is_now], [*others, was], tmp_path) == [
        (kind, f"{VARYING}: was {then.value}, is {now.value}"),
    ]


def test_known_issues_that_come_and_go_are_told(tmp_path: Path) -> None:
    shows = a_record(VARYING, verdict=Verdict.KNOWN, reason="kr-1", findings=(finding("known:kr-1"),))
    others = [a_record(test) for test in IDS]
    assert told([*others, shows], passed(), tmp_path / "a") == [("newly known", f"{VARYING}: shows kr-1")]
    assert told(passed(), [*others, shows], tmp_path / "b") == [("no longer known", f"{VARYING}: showed kr-1")]


def test_coverage_that_went_away_closes_the_gate(tmp_path: Path) -> None:
    decision = answer(write(tmp_path / "now"), baseline=before(tmp_path, *passed(EXTRA)))
    assert decision.exit_code == EXIT_INFRA
    assert [one.what for one in decision.objections] == [f"{EXTRA}: was pass, is not there"]


def test_a_test_may_be_retired_until_a_date(tmp_path: Path) -> None:
    now, then = write(tmp_path / "now"), before(tmp_path, *passed(EXTRA))
    assert answer(now, baseline=then, required=retired("2026-11-05")).exit_code == EXIT_OK
    assert answer(now, baseline=then, required=retired("2026-11-04")).exit_code == EXIT_INFRA


def test_a_pair_that_is_looked_at_and_was_not_there_is_one_change(tmp_path: Path) -> None:
    then = write(tmp_path / "before", pair=OTHER, started=EARLIER)
    decision = answer(write(tmp_path / "now"), baseline=then)
    assert [change.kind for change in decision.changes] == ["newly covered"]
    assert decision.exit_code == EXIT_OK


def test_a_required_pair_that_is_gone_is_one_change_and_an_objection(tmp_path: Path) -> None:
    decision = answer(write(tmp_path / "now", pair=OTHER), baseline=before(tmp_path))
    assert [change.kind for change in decision.changes] == ["newly uncovered", "newly covered"]
    assert {one.kind for one in decision.objections} == {"missing", "uncovered"}


def test_a_baseline_on_another_kubernetes_is_compared_all_the_same(tmp_path: Path) -> None:
    then = on_kubernetes("1.33.1", before(tmp_path, *passed(EXTRA)))
    decision = answer(write(tmp_path / "now"), baseline=then)
    assert decision.exit_code == EXIT_INFRA
    assert [(change.kind, str(change)) for change in decision.changes] == [
        ("other Kubernetes", "the baseline ran on Kubernetes 1.33.1"),
        ("newly uncovered", f"{EXTRA}: was pass, is not there"),
    ]
    for view in (markdown(decision).replace("\\", ""), text(decision)):
        assert "the baseline ran on Kubernetes 1.33.1" in view


def test_another_kubernetes_alone_closes_no_gate(tmp_path: Path) -> None:
    then = on_kubernetes("1.33.1", before(tmp_path))
    decision = answer(write(tmp_path / "now"), baseline=then)
    assert (decision.exit_code, [change.kind for change in decision.changes]) == (EXIT_OK, ["other Kubernetes"])


def test_a_required_pair_that_is_gone_is_uncovered_whatever_kubernetes_it_ran_on(
    tmp_path: Path,
) -> None:
    other = write(tmp_path / "now", pair=OTHER)
    decision = answer(other, baseline=on_kubernetes("1.33.1", before(tmp_path)))
    assert {one.kind for one in decision.objections} == {"missing", "uncovered"}


def test_of_two_kubernetes_the_same_one_is_compared_else_the_last_that_ran(tmp_path: Path) -> None:
    now = write(tmp_path / "now")
    old = on_kubernetes("1.9.9", write(tmp_path / "both", passed(EXTRA), started=EARLIER - datetime.timedelta(days=1)))
    last = on_kubernetes("1.33.1", write(tmp_path / "both", started=EARLIER))
    decision = answer(now, baseline=tmp_path / "both")
    assert (decision.exit_code, [one.cell.kubernetes for one in decision.beside]) == (EXIT_OK, ["1.9.9"])
    assert [one.why for one in decision.beside] == ["what ran on Kubernetes 1.33.1 is compared instead"]
    on_kubernetes(VERSIONS.default.kubernetes, old)
    decision = answer(now, baseline=tmp_path / "both")
    assert (decision.exit_code, [one.cell.kubernetes for one in decision.beside]) == (EXIT_INFRA, ["1.33.1"])
    assert last.exists()


def test_a_gate_over_one_pair_may_have_a_baseline_of_more_and_says_what_it_did_not_compare(tmp_path: Path) -> None:
    before(tmp_path)
    before(tmp_path, *passed(EXTRA), pair=OTHER)
    decision = answer(write(tmp_path / "now"), baseline=tmp_path / "before")
    assert (decision.exit_code, decision.changes) == (EXIT_OK, ())
    for view in (markdown(decision).replace("\\", ""), text(decision)):
        assert "Kueue 0.16.2 + KubeRay 1.5.1 on Kubernetes 1.34.4, embedded: 5 tests were there" in view
        assert "this gate does not require it" in view


def test_a_pair_that_is_not_served_any_more_is_told(tmp_path: Path) -> None:
    before(tmp_path)
    gone = before(tmp_path, pair=OTHER)
    forge(gone, pair={**OTHER.versions(), "kueue": "0.9.9"})
    decision = answer(write(tmp_path / "now"), baseline=tmp_path / "before")
    assert (decision.exit_code, decision.changes) == (EXIT_OK, ())
    assert "not compared (1): dropped: versions.toml does not have the pair any more" in text(decision)
    assert "Kueue 0.9.9 + KubeRay 1.5.1" in text(decision)


def test_without_anything_left_over_nothing_is_said_of_it(tmp_path: Path) -> None:
    decision = answer(write(tmp_path / "now"), baseline=before(tmp_path))
    assert "not compared" not in text(decision)
    assert "compared with nothing" not in markdown(decision)


def test_a_baseline_that_is_newer_than_any_of_the_reports_is_none(tmp_path: Path) -> None:
    write(tmp_path / "now", pair=OTHER)
    write(tmp_path / "now", started=EARLIER)
    then = write(tmp_path / "before", started=EARLIER + datetime.timedelta(seconds=1))
    decision = answer(tmp_path / "now", baseline=then)
    assert decision.exit_code == EXIT_USAGE
    assert "it is newer (2026-11-04T10:15:03.000Z) than what is compared with it" in decision.objections[0].what


def test_a_baseline_may_be_of_another_commit_suite_and_lock(tmp_path: Path) -> None:
    then = before(tmp_path, commit="d" * 40, suite_version="0.0.9", lock_digest="ab" * 32)
    assert answer(write(tmp_path / "now"), baseline=then).exit_code == EXIT_OK


def test_a_baseline_of_another_profile_is_none(tmp_path: Path) -> None:
    decision = answer(write(tmp_path / "now"), baseline=before(tmp_path, profile="full"))
    assert decision.exit_code == EXIT_USAGE
    assert "its profile is full, now it is core" in decision.objections[0].what


def test_reports_are_no_baseline_for_themselves(tmp_path: Path) -> None:
    report = write(tmp_path)
    assert "one of the reports themselves" in answer(report, baseline=report).objections[0].what


def test_a_damaged_baseline_is_told_as_one(tmp_path: Path) -> None:
    then = before(tmp_path)
    (then / "plan.json").write_text("{}")
    decision = answer(write(tmp_path / "now"), baseline=then)
    assert decision.exit_code == EXIT_INFRA
    assert decision.objections[0].where.startswith("baseline ")
    assert "The baseline was refused, so nothing was compared." in text(decision)


def test_a_baseline_that_is_not_there_is_a_wrong_question(tmp_path: Path) -> None:
    assert answer(write(tmp_path / "now"), baseline=tmp_path / "nosuch").exit_code == EXIT_USAGE
