from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from raykueue.report.errors import ReportError
from raykueue.report.folder import ReportFolder
from raykueue.report.reading import load
from raykueue.report.record import encode
from tests.report.samples import FACTS, PAIR, record

NOW = datetime(2026, 11, 5, 10, 15, 2, tzinfo=UTC)
IDS = ["t.py::a", "t.py::b"]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    folder = ReportFolder.create(tmp_path, PAIR, "embedded", NOW)
    folder.plan(IDS)
    for test in IDS:
        folder.add(record(test))
    folder.finish(FACTS, NOW)
    assert load(folder.path).run.exit_code == 0
    return folder.path


def forge(report: Path, **changes: Any) -> None:
    """Changes run.json, and makes its digests true again: what only the contents can reveal."""
    run = json.loads((report / "run.json").read_text())
    run["files"] = {name: hashlib.sha256((report / name).read_bytes()).hexdigest() for name in run["files"]}
    (report / "run.json").write_text(json.dumps(run | changes))


def test_a_folder_that_does_not_exist_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="there is no report"):
        load(tmp_path / "latest")


def test_an_unfinished_run_is_no_report_and_the_message_says_how_far_it_came(tmp_path: Path) -> None:
    folder = ReportFolder.create(tmp_path, PAIR, "embedded", NOW)
    with pytest.raises(ReportError, match="no plan and records yet"):
        load(folder.path)
    folder.plan(IDS)
    folder.add(record(IDS[0]))
    with pytest.raises(ReportError, match=r"did not finish.*1 of 2 planned tests"):
        load(folder.path)


def test_a_last_line_that_is_cut_short_is_noticed(report: Path) -> None:
    records = report / "records.jsonl"
    records.write_bytes(records.read_bytes()[:-20])
    with pytest.raises(ReportError, match="last line is cut short"):
        load(report)


def test_a_damaged_line_is_named_by_its_number(report: Path) -> None:
    lines = (report / "records.jsonl").read_text().splitlines(keepends=True)
    (report / "records.jsonl").write_text(lines[0] + lines[1].replace('"pass"', '"passed"'))
    with pytest.raises(ReportError, match=r"line 2: record of 't\.py::b'"):
        load(report)


@pytest.mark.parametrize("name", ["plan.json", "summary.md", "junit.xml", "records.jsonl"])
def test_a_changed_file_is_named(report: Path, name: str) -> None:
    text = (report / name).read_text()
    (report / name).write_text(text.replace("A job waits", "A job runs").replace("t.py::b", "t.py::c"))
    with pytest.raises(ReportError, match=rf"{name}: it was changed or damaged"):
        load(report)


@pytest.mark.parametrize("name", ["plan.json", "summary.md", "junit.xml", "records.jsonl"])
def test_a_missing_file_is_named(report: Path, name: str) -> None:
    (report / name).unlink()
    with pytest.raises(ReportError, match=rf"{name}: .*missing"):
        load(report)


def test_a_file_that_is_no_text_is_an_error_in_words(report: Path) -> None:
    (report / "records.jsonl").write_bytes(b"\xff\xfe\n")
    with pytest.raises(ReportError, match=r"records.jsonl: it can't be read"):
        load(report)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}'])
def test_a_run_json_that_is_none_is_an_error_in_words(report: Path, text: str) -> None:
    (report / "run.json").write_text(text)
    with pytest.raises(ReportError, match=r"run\.json"):
        load(report)


def test_a_planned_test_without_a_record_is_noticed(report: Path) -> None:
    (report / "records.jsonl").write_text(encode(record(IDS[0])) + "\n")
    forge(report)
    with pytest.raises(ReportError, match=r"1 planned tests have no record, the first is t\.py::b"):
        load(report)


def test_a_test_with_two_records_is_noticed(report: Path) -> None:
    (report / "records.jsonl").write_text("".join(encode(record(test)) + "\n" for test in [*IDS, IDS[0]]))
    forge(report)
    with pytest.raises(ReportError, match="more than one record"):
        load(report)


def test_a_pass_that_nobody_planned_is_noticed(report: Path) -> None:
    (report / "records.jsonl").write_text("".join(encode(record(test)) + "\n" for test in [*IDS, "t.py::c"]))
    forge(report)
    with pytest.raises(ReportError, match=r"t\.py::c was not planned"):
        load(report)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"planned": 3}, "counts 3 planned tests"),
        ({"exit_code": 1}, "exit code is 1, the records say 0"),
        ({"interrupted": True}, "exit code is 0, the records say 2"),
        ({"files": {}}, "no digest of plan.json"),
        ({"files": {"../secret": "0" * 64}}, "files"),
        ({"format": 3}, "format"),
    ],
)
def test_a_run_json_that_contradicts_the_records_is_noticed(report: Path, changes: dict[str, Any], words: str) -> None:
    forge(report, **changes)
    with pytest.raises(ReportError, match=words):
        load(report)


def test_counts_that_the_records_do_not_bear_out_are_noticed(report: Path) -> None:
    counts = json.loads((report / "run.json").read_text())["counts"]
    forge(report, counts=counts | {"pass": 7})
    with pytest.raises(ReportError, match="its counts are"):
        load(report)
