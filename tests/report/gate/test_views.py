from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from raykueue.cli import main
from raykueue.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from raykueue.model.findings import Verdict
from raykueue.report.gate import command
from raykueue.report.gate.judging import Objection
from raykueue.report.gate.summary import markdown
from raykueue.report.gate.text import text
from raykueue.report.summary import LIMIT
from tests.report.gate.reports import ASKED, IDS, REQUIRED, VARYING, VERSIONS, a_record, answer, write
from tests.report.samples import FACTS, finding
from tests.report.test_known import issue

FAILED = a_record(IDS[0], verdict=Verdict.FAIL, reason="2 pods too many")


@pytest.fixture
def required(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(command, "commit_of", lambda _: FACTS.commit)
    monkeypatch.setattr(command, "_now", lambda: ASKED)
    (tmp_path / "required.toml").write_text(REQUIRED)
    return f"--required={tmp_path / 'required.toml'}"


def test_the_verdict_is_the_first_line_of_the_summary_and_the_last_of_the_text(tmp_path: Path) -> None:
    decision = answer(write(tmp_path, [FAILED, *map(a_record, (*IDS[1:], VARYING))]))
    assert markdown(decision).startswith("# gate one CLOSED: 1 failed\n")
    assert text(decision).endswith("\ngate one CLOSED: 1 failed (exit code 1)\n")
    for view in (markdown(decision).replace("\\", ""), text(decision)):
        assert f"{IDS[0]}: 2 pods too many" in view


def test_an_open_gate_says_how_much_it_looked_at(tmp_path: Path) -> None:
    assert text(answer(write(tmp_path))).endswith("gate one OPEN: 4 tests on 1 pair, 4 required (exit code 0)\n")


def test_every_pair_has_a_row_with_its_verdicts_and_one_without_a_report_says_so(tmp_path: Path) -> None:
    pair = VERSIONS.pair(kueue="0.16.2", kuberay="1.5.1")
    decision = answer(write(tmp_path), gate="two", named=(VERSIONS.default, pair))
    rows = [line for line in markdown(decision).splitlines() if line.startswith("| Kueue")]
    assert rows[0].endswith("| 3 |  |  |  |  | 4 |  |  | 68.0 s |".replace("68.0 s", "1 min 08 s"))
    assert rows[1].endswith("| **no report** |")


def test_known_issues_that_show_are_listed_with_their_link(tmp_path: Path) -> None:
    shows = a_record(IDS[0], verdict=Verdict.KNOWN, reason="kr-1", findings=(finding("known:kr-1"),))
    report = write(tmp_path, [shows, *map(a_record, (*IDS[1:], VARYING))], known_links={"kr-1": "example.org/kr-1"})
    assert "`kr-1` in 1 of the tests example.org/kr-1" in markdown(answer(report, issues=(issue(tests=("suites/*",)),)))


def test_a_summary_stays_within_its_limit_and_says_what_was_cut(tmp_path: Path) -> None:
    decision = answer(write(tmp_path))
    many = tuple(Objection(1, "failed", "where", f"suites/x.py::test_{number}: {'ü|' * 300}") for number in range(5000))
    shown = markdown(dataclasses.replace(decision, objections=many))
    assert len(shown.encode()) <= LIMIT
    assert shown.startswith("# gate one CLOSED: 5000 failed")
    assert "*Cut here, to stay within a CI summary's size: " in shown
    assert "| Kueue 0.19.2 + KubeRay 1.6.2" in shown


def test_what_changed_is_in_both_views(tmp_path: Path) -> None:
    then = write(tmp_path / "before", [FAILED, *map(a_record, (*IDS[1:], VARYING))], commit="c" * 40)
    decision = answer(write(tmp_path / "now"), baseline=then)
    for view in (markdown(decision).replace("\\", ""), text(decision)):
        assert "no longer failing" in view
        assert "suite ccccccccc" in view
    assert "No baseline was given" in text(answer(write(tmp_path / "alone")))


def test_the_command_prints_the_answer_and_appends_the_summary(
    tmp_path: Path, required: str, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    report = write(tmp_path / "reports")
    # Known issues that are overdue on the day of this test would be objections, and rightly so.
    code = main(["gate", str(report), required, f"--summary={summary}"])
    out = capsys.readouterr().out
    assert out.endswith(f"(exit code {code})\n")
    assert summary.read_text().startswith("before\n# gate one ")


def test_the_command_holds_reports_against_its_own_commit(
    tmp_path: Path, required: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_known_issues", list)
    report = write(tmp_path / "reports", commit="c" * 40)
    assert main(["gate", str(report), required]) == EXIT_USAGE
    assert "(--allow-other-commits takes it)" in capsys.readouterr().out
    assert main(["gate", str(report), required, "--allow-other-commits"]) == EXIT_OK
    assert "OPEN (with 1 report of other commits)" in capsys.readouterr().out


def test_the_command_exits_as_the_gate_says(tmp_path: Path, required: str) -> None:
    report = write(tmp_path / "reports", [FAILED, *map(a_record, (*IDS[1:], VARYING))])
    assert main(["gate", str(report), required]) == EXIT_FAILED
    assert main(["gate", str(tmp_path / "nosuch"), required]) == EXIT_USAGE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gate", "three"], "gate 'three' is not known"),
        (["--gate", "two", "--pair", "0.19.2"], "expected KUEUE+KUBERAY"),
        (["--gate", "two", "--pair", "9.9.9+1.6.2"], "kueue 9.9.9 is not in versions.toml"),
        (["--required", "nosuch.toml"], "--required names the file"),
    ],
)
def test_a_wrong_question_is_a_usage_error(
    words: list[str], said: str, tmp_path: Path, required: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", str(tmp_path), required, *words]) == EXIT_USAGE
    assert said in capsys.readouterr().err


def test_a_named_pair_is_asked_for_on_the_command_line(
    tmp_path: Path, required: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = write(tmp_path / "reports", pair=VERSIONS.pair(kueue="0.16.2", kuberay="1.5.1"))
    main(["gate", str(report), required, "--gate=two", "--pair=0.16.2+1.5.1"])
    assert "no report" not in capsys.readouterr().out
