from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from raykueue.model.findings import Verdict
from raykueue.report.errors import ReportError
from raykueue.report.folder import ReportFolder
from raykueue.report.reading import load
from tests.report.samples import FACTS, PAIR, full_record, record

NOW = datetime(2026, 11, 5, 10, 15, 2, tzinfo=UTC)
LATER = NOW + timedelta(seconds=68.5)


@pytest.fixture
def folder(tmp_path: Path) -> ReportFolder:
    return ReportFolder.create(tmp_path / "reports", PAIR, "embedded", NOW)


def test_the_folders_name_says_when_and_what(folder: ReportFolder) -> None:
    assert folder.path.name == "20261105T101502Z-kueue0.19.2-kuberay1.6.2-embedded"


def test_two_runs_of_the_same_second_have_two_folders(folder: ReportFolder) -> None:
    others = {ReportFolder.create(folder.path.parent, PAIR, "embedded", NOW).path for _ in range(3)}
    assert len(others | {folder.path}) == 4


def test_a_file_in_the_place_of_the_base_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("")
    with pytest.raises(ReportError, match="reports"):
        ReportFolder.create(tmp_path / "reports", PAIR, "embedded", NOW)


def test_the_plan_is_on_disk_before_the_first_record(folder: ReportFolder) -> None:
    folder.plan(["t.py::a", "t.py::b"])
    assert json.loads((folder.path / "plan.json").read_text()) == {"ids": ["t.py::a", "t.py::b"]}


def test_a_test_can_be_planned_only_once(folder: ReportFolder) -> None:
    with pytest.raises(ReportError, match=r"t\.py::a is planned twice"):
        folder.plan(["t.py::a", "t.py::b", "t.py::a"])


def test_a_run_has_one_plan(folder: ReportFolder) -> None:
    folder.plan([])
    with pytest.raises(ReportError, match="has its plan already"):
        folder.plan(["t.py::a"])


def test_each_record_is_a_whole_line_on_disk_when_add_returns(folder: ReportFolder) -> None:
    for number in range(1, 4):
        folder.add(record(f"t.py::{number}"))
        assert (folder.path / "records.jsonl").read_text().count("\n") == number


def test_an_invalid_record_leaves_the_file_as_it_was(folder: ReportFolder) -> None:
    folder.add(record("t.py::a"))
    before = (folder.path / "records.jsonl").read_bytes()
    with pytest.raises(ReportError):
        folder.add(record("t.py::b", started="now"))
    assert (folder.path / "records.jsonl").read_bytes() == before


def test_a_finished_report_loads_as_it_was_written(folder: ReportFolder) -> None:
    folder.plan([full_record().id, "t.py::b"])
    folder.add(record("t.py::b"))
    folder.add(full_record())
    written = folder.finish(FACTS, LATER)
    read = load(folder.path)
    assert read.run == written.run
    assert read.records == written.records == (full_record(), record("t.py::b"))
    assert read.run.exit_code == 1
    assert read.run.wall_seconds == 68.5


def test_every_file_but_run_json_has_its_digest_also_in_sub_folders(folder: ReportFolder) -> None:
    (folder.path / "journals").mkdir()
    (folder.path / "journals" / "a.jsonl.gz").write_bytes(b"\x1f\x8b")
    report = folder.finish(FACTS, LATER)
    names = {"journals/a.jsonl.gz", "junit.xml", "plan.json", "records.jsonl", "summary.md"}
    assert set(report.run.files) == names
    on_disk = {path.relative_to(folder.path).as_posix() for path in folder.path.rglob("*") if path.is_file()}
    assert on_disk == names | {"run.json"}


def test_lost_unplanned_and_repeated_tests_are_infra_in_every_view(folder: ReportFolder) -> None:
    folder.plan(["t.py::lost", "t.py::twice", "t.py::good"])
    for test in ("t.py::twice", "t.py::good", "t.py::twice", "t.py::stray"):
        folder.add(record(test))
    folder.finish(FACTS, LATER)
    report = load(folder.path)
    assert {each.id: each.verdict for each in report.records} == {
        "t.py::lost": Verdict.INFRA,
        "t.py::twice": Verdict.INFRA,
        "t.py::good": Verdict.PASS,
        "t.py::stray": Verdict.INFRA,
    }
    assert report.run.exit_code == 3
    assert report.run.counts["infra"] == 3
    assert ' errors="3" ' in (folder.path / "junit.xml").read_text()
    assert "# NOT JUDGED: 3 of 4 tests could not be judged" in (folder.path / "summary.md").read_text()


def test_a_problem_of_the_run_is_a_record_so_that_no_view_is_green(folder: ReportFolder) -> None:
    folder.plan(["t.py::a"])
    folder.add(record("t.py::a"))
    folder.finish(FACTS, LATER, problems=["the recorder died: signal 9"])
    report = load(folder.path)
    assert report.run.exit_code == 3
    assert report.records[-1].reason == "the recorder died: signal 9"


def test_a_run_that_died_before_its_plan_still_has_a_report(folder: ReportFolder) -> None:
    folder.finish(FACTS, LATER, problems=["the cluster did not start"])
    report = load(folder.path)
    assert (report.run.planned, report.run.exit_code) == (0, 3)


def test_an_interrupted_run_exits_with_2_though_tests_are_lost(folder: ReportFolder) -> None:
    folder.plan(["t.py::a", "t.py::b"])
    folder.add(record("t.py::a"))
    folder.finish(FACTS, LATER, interrupted=True)
    report = load(folder.path)
    assert report.run.exit_code == 2
    assert "interrupted" in report.records[1].reason


def test_latest_appears_only_when_the_run_is_finished(folder: ReportFolder) -> None:
    latest = folder.path.parent / "latest"
    folder.plan(["t.py::a"])
    folder.add(record("t.py::a"))
    assert not latest.is_symlink()
    folder.finish(FACTS, LATER)
    assert latest.readlink() == Path(folder.path.name)
    assert load(latest).folder == folder.path.resolve()


def test_latest_moves_on_to_the_next_run(folder: ReportFolder) -> None:
    folder.finish(FACTS, LATER)
    following = ReportFolder.create(folder.path.parent, PAIR, "kind", LATER)
    following.finish(FACTS, LATER)
    assert (folder.path.parent / "latest").readlink() == Path(following.path.name)
    assert sorted(path.name for path in folder.path.parent.iterdir()) == sorted(
        [folder.path.name, following.path.name, "latest"]
    )


def test_a_folder_in_the_place_of_latest_is_not_removed(folder: ReportFolder) -> None:
    (folder.path.parent / "latest").mkdir()
    with pytest.raises(ReportError, match="latest"):
        folder.finish(FACTS, LATER)
    assert load(folder.path).run.exit_code == 5


def test_nothing_can_be_added_to_a_finished_report(folder: ReportFolder) -> None:
    folder.finish(FACTS, LATER)
    with pytest.raises(ReportError, match="too late"):
        folder.add(record())
    with pytest.raises(ReportError, match="finished already"):
        folder.finish(FACTS, LATER)
