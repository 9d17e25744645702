from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path

import pytest

from raykueue.errors import EXIT_EMPTY, EXIT_FAILED, EXIT_OK, EXIT_USAGE, UsageError
from raykueue.model.findings import Verdict
from raykueue.report.gate.decision import decide
from raykueue.report.gate.evidence import gather
from raykueue.report.gate.judging import Objection, exit_code
from raykueue.report.gate.summary import markdown
from raykueue.report.gate.text import text
from tests.report.gate.reports import (
    IDS,
    REQUIRED,
    SUITE,
    VARYING,
    VERSIONS,
    a_record,
    answer,
    kinds,
    question,
    write,
)
from tests.report.samples import FACTS, finding
from tests.report.test_known import issue

TRYING = dataclasses.replace(SUITE, other_commits=True)
ALWAYS = issue(tests=("suites/walkthrough/*",))


def showing(test: str) -> dict[str, object]:
    return {"verdict": Verdict.KNOWN, "reason": "kr-1", "findings": (finding("known:kr-1"),)}


def test_a_gate_opens_for_all_that_it_requires(tmp_path: Path) -> None:
    decision = answer(write(tmp_path))
    assert (decision.exit_code, decision.objections) == (EXIT_OK, ())


@pytest.mark.parametrize("absences", [("needs:legacy-deletion-policy",), ("lacks:v1beta2", "needs:head-not-replaced")])
def test_a_test_may_not_apply_where_it_need_not_run(absences: tuple[str, ...], tmp_path: Path) -> None:
    absent = a_record(VARYING, verdict=Verdict.NOT_APPLICABLE, reason="this pair is too new", absences=absences)
    assert answer(write(tmp_path, [*map(a_record, IDS), absent])).exit_code == EXIT_OK


@pytest.mark.parametrize("absence", ["tier:node", "faults:nodes"])
def test_a_test_that_nobody_requires_may_need_another_kind_of_cluster(absence: str, tmp_path: Path) -> None:
    absent = a_record("suites/x/test_x.py::test_x", verdict=Verdict.NOT_APPLICABLE, reason="r", absences=(absence,))
    assert answer(write(tmp_path, [*map(a_record, (*IDS, VARYING)), absent])).exit_code == EXIT_OK


def test_the_shards_of_a_run_count_as_the_whole(tmp_path: Path) -> None:
    write(tmp_path / "1", [a_record(IDS[0]), a_record(VARYING)])
    write(tmp_path / "2", [a_record(IDS[1]), a_record(IDS[2])])
    decision = answer(tmp_path)
    assert decision.exit_code == EXIT_OK
    assert len(decision.cells) == 1


def test_links_to_reports_are_not_followed_but_may_be_named(tmp_path: Path) -> None:
    write(tmp_path)
    assert (tmp_path / "latest").is_symlink()
    assert answer(tmp_path).exit_code == answer(tmp_path / "latest").exit_code == EXIT_OK


@pytest.mark.parametrize("kubernetes", ["1.34.4", "1.34.11"])
def test_a_cell_of_kind_is_that_of_the_pair_whichever_kubernetes_its_node_image_has(
    kubernetes: str, tmp_path: Path
) -> None:
    folder = write(tmp_path, backend="kind", versions={"kubernetes": kubernetes})
    assert answer(folder, required=REQUIRED.replace("embedded", "kind")).exit_code == EXIT_OK


def test_a_report_of_kind_whose_node_image_and_ray_nobody_pinned_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, backend="kind", lock_digest=VERSIONS.digest(VERSIONS.default))
    decision = answer(folder, required=REQUIRED.replace("embedded", "kind"))
    assert decision.exit_code == EXIT_USAGE
    assert "was pinned by another versions.toml" in " ".join(str(one) for one in decision.objections)


CHANGED = f"{FACTS.commit}-dirty-0a1b2c3d4e5f"


@pytest.mark.parametrize("commit", ["c" * 40, CHANGED, ""], ids=["another", "changed", "unknown"])
def test_reports_of_other_commits_count_where_somebody_says_so_and_the_answer_says_it(
    commit: str, tmp_path: Path
) -> None:
    report = write(tmp_path, commit=commit)
    assert answer(report).exit_code == EXIT_USAGE
    decision = answer(report, suite=TRYING)
    assert decision.exit_code == EXIT_OK
    assert "gate one OPEN (with 1 report of other commits): " in text(decision)
    assert f"counted all the same (1): {report}" in text(decision)
    assert "## Counted all the same" in markdown(decision)
    assert markdown(decision).startswith("# gate one OPEN (with 1 report of other commits)")


def test_what_is_wrong_otherwise_stays_wrong_where_other_commits_count(tmp_path: Path) -> None:
    write(tmp_path / "1", [a_record(IDS[0]), a_record(VARYING)], commit="c" * 40)
    write(tmp_path / "2", [a_record(IDS[1]), a_record(IDS[2])])
    mixed = answer(tmp_path, suite=TRYING)
    assert mixed.exit_code == EXIT_USAGE
    assert "its commit of the suite is" in mixed.objections[0].what
    other = answer(write(tmp_path / "3", commit="c" * 40, suite_version="9.9.9"), suite=TRYING)
    assert (other.exit_code, other.waived) == (EXIT_USAGE, ())


def test_two_trees_that_were_changed_otherwise_do_not_belong_together(tmp_path: Path) -> None:
    write(tmp_path / "1", [a_record(IDS[0]), a_record(VARYING)], commit=CHANGED)
    write(tmp_path / "2", [a_record(IDS[1]), a_record(IDS[2])], commit=CHANGED.replace("0a", "ff"))
    assert answer(tmp_path, suite=TRYING).exit_code == EXIT_USAGE


def test_a_changed_gate_opens_for_nothing_that_it_was_not_asked_to_take(tmp_path: Path) -> None:
    report = write(tmp_path)
    assert answer(report, suite=dataclasses.replace(SUITE, commit=CHANGED)).exit_code == EXIT_USAGE


def test_a_gate_without_a_repository_compares_commits_with_each_other_only(tmp_path: Path) -> None:
    installed = dataclasses.replace(SUITE, commit="")
    report = write(tmp_path / "1", commit="c" * 40)
    assert answer(report, suite=installed).exit_code == EXIT_OK
    other = write(tmp_path / "2", [a_record("suites/x/test_x.py::test_x")])
    assert answer(report, other, suite=installed).exit_code == EXIT_USAGE
    assert answer(write(tmp_path / "3", commit=""), suite=installed).exit_code == EXIT_USAGE


def test_what_is_not_required_may_be_there(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, [a_record("suites/x/test_x.py::test_x")], pair=VERSIONS.pair(kueue="0.10.1", kuberay="1.3.2"))
    decision = answer(tmp_path)
    assert decision.exit_code == EXIT_OK
    assert [judged.cell.kueue for judged in decision.cells] == ["0.19.2", "0.10.1"]


def test_a_pair_of_which_nothing_ran_is_empty(tmp_path: Path) -> None:
    write(tmp_path)
    absences = ("needs:v1beta2",)
    absent = a_record("suites/x/test_x.py::test_x", verdict=Verdict.NOT_APPLICABLE, reason="r", absences=absences)
    write(tmp_path, [absent], pair=VERSIONS.pair(kueue="0.10.1", kuberay="1.3.2"))
    assert answer(tmp_path).exit_code == EXIT_EMPTY


def test_named_pairs_are_what_such_a_gate_requires(tmp_path: Path) -> None:
    pair = VERSIONS.pair(kueue="0.16.2", kuberay="1.5.1")
    write(tmp_path, pair=pair)
    assert answer(tmp_path, gate="two", named=(pair,)).exit_code == EXIT_OK
    assert kinds(answer(tmp_path, gate="two", named=(VERSIONS.default,))) == {"missing": 1}


def test_a_gate_of_named_pairs_needs_some_and_others_take_none() -> None:
    with pytest.raises(UsageError, match=r"--pair KUEUE\+KUBERAY"):
        decide(question(gate="two"), gather([]))
    with pytest.raises(UsageError, match="--pair is for gates that ask for it"):
        decide(question(named=(VERSIONS.default,)), gather([]))


def test_a_known_issue_that_shows_is_no_objection(tmp_path: Path) -> None:
    records = [a_record(IDS[0], **showing(IDS[0])), *map(a_record, (*IDS[1:], VARYING))]
    assert answer(write(tmp_path, records), issues=(ALWAYS,)).exit_code == EXIT_OK


def test_a_known_issue_that_no_shard_shows_has_vanished_though_none_of_them_could_tell(tmp_path: Path) -> None:
    write(tmp_path / "1", [a_record(IDS[0]), a_record(VARYING)])
    write(tmp_path / "2", [a_record(IDS[1]), a_record(IDS[2])])
    decision = answer(tmp_path, issues=(ALWAYS,))
    assert (decision.exit_code, kinds(decision)) == (EXIT_FAILED, {"vanished": 1})


def test_a_known_issue_that_explains_a_test_that_it_is_not_about_explains_nothing(tmp_path: Path) -> None:
    records = [a_record(IDS[0], **showing(IDS[0])), *map(a_record, (*IDS[1:], VARYING))]
    other = issue(tests=("suites/other/*",))
    assert kinds(answer(write(tmp_path, records), issues=(other,))) == {"unexplained": 1}


def test_a_known_issue_that_is_overdue_closes_a_gate_whatever_the_day_of_the_run(tmp_path: Path) -> None:
    report = write(tmp_path, [a_record(IDS[0], **showing(IDS[0])), *map(a_record, (*IDS[1:], VARYING))])
    days = {day: datetime.datetime(2026, 12, day, 23, 59, tzinfo=datetime.UTC) for day in (30, 31)}
    on = {day: answer(report, issues=(ALWAYS,), now=now).exit_code for day, now in days.items()}
    assert on == {30: EXIT_OK, 31: EXIT_OK}
    late = answer(report, issues=(ALWAYS,), now=datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC))
    assert (late.exit_code, kinds(late)) == (EXIT_FAILED, {"expired": 1})


def test_a_finding_of_a_test_that_failed_is_told_once(tmp_path: Path) -> None:
    failed = a_record(IDS[0], verdict=Verdict.FAIL, reason="2 pods too many", findings=(finding(),))
    assert kinds(answer(write(tmp_path, [failed, *map(a_record, (*IDS[1:], VARYING))]))) == {"failed": 1}


@pytest.mark.parametrize(
    ("codes", "code"), [((), 0), ((5,), 5), ((5, 3), 3), ((3, 1), 1), ((5, 3, 1, 4), EXIT_USAGE), ((1, 4), 4)]
)
def test_the_exit_code_is_the_first_in_order_of_precedence(codes: tuple[int, ...], code: int) -> None:
    assert exit_code(Objection(one, "kind", "where", "what") for one in codes) == code


def test_today_is_the_day_in_utc_on_which_it_is_asked() -> None:
    west = datetime.timezone(datetime.timedelta(hours=-8))
    assert question(now=datetime.datetime(2026, 11, 5, 20, tzinfo=west)).today == datetime.date(2026, 11, 6)
