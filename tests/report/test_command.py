from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from raykueue.report.command import add_parser
from raykueue.report.errors import ReportError
from raykueue.report.folder import ReportFolder
from tests.report.samples import FACTS, PAIR, full_record

NOW = datetime(2026, 11, 5, 10, 15, 2, tzinfo=UTC)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with one report whose run failed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    folder = ReportFolder.create(Path("reports"), PAIR, "embedded", NOW)
    folder.plan([full_record().id])
    folder.add(full_record())
    folder.finish(FACTS, NOW)
    return tmp_path


@pytest.fixture
def raykueue() -> Callable[..., int]:
    def call(*arguments: str) -> int:
        parser = argparse.ArgumentParser(prog="raykueue")
        add_parser(parser.add_subparsers(required=True))
        parsed = parser.parse_args(arguments)
        code: int = parsed.run(parsed)
        return code

    return call


def test_it_shows_the_latest_run_and_exits_as_the_run_did(
    here: Path, raykueue: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert raykueue("report") == 1
    out = capsys.readouterr().out
    assert out.startswith("raykueue: Kueue 0.19.2 + KubeRay 1.6.2")
    assert out.endswith("FAILED: 1 of 1 test failed (exit code 1)\n")
    assert "Report    reports/20261105T101502Z-kueue0.19.2-kuberay1.6.2-embedded/summary.md\n" in out
    assert "\x1b" not in out


def test_markdown_is_the_summary_that_the_run_wrote(
    here: Path, raykueue: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert raykueue("report", "reports/latest", "--format", "markdown") == 1
    assert capsys.readouterr().out == Path("reports/latest/summary.md").read_text()


def test_json_has_the_run_and_its_records(
    here: Path, raykueue: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert raykueue("report", "--format", "json") == 1
    out = json.loads(capsys.readouterr().out)
    assert out["run"]["exit_code"] == 1
    assert out["records"] == [full_record().to_dict()]


def test_an_output_that_knows_only_ascii_gets_what_it_can_show(
    here: Path, raykueue: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii", write_through=True))
    assert raykueue("report", "--format", "markdown") == 1
    assert b"Traceback ?" in out.getvalue()


def test_a_damaged_report_is_an_error_not_a_verdict(here: Path, raykueue: Callable[..., int]) -> None:
    Path("reports/latest/summary.md").write_text("# GREEN")
    with pytest.raises(ReportError, match="changed or damaged"):
        raykueue("report")


def test_without_any_run_it_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raykueue: Callable[..., int]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReportError, match="reports/latest: there is no report"):
        raykueue("report")


def test_its_help_explains_the_exit_codes_and_has_examples(
    raykueue: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        raykueue("report", "--help")
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    assert "5 nothing ran" in out
