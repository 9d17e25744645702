from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from raykueue.report.folder import ReportFolder
from raykueue.report.reading import load
from raykueue.report.run_info import LoadedReport, RunInfo
from raykueue.report.terminal import terminal
from tests.report.samples import FACTS, PAIR, record

NOW = datetime(2026, 11, 5, 10, 15, tzinfo=UTC)
SAID = "CRD rayjobs.ray.io differs from the pinned one at versions[0].schema"


def finished(base: Path, *drift: str) -> LoadedReport:
    folder = ReportFolder.create(base, PAIR, "embedded", NOW)
    folder.plan([record().id])
    folder.add(record())
    folder.finish(replace(FACTS, drift=drift), NOW)
    return load(folder.path)


def test_a_report_says_how_what_ran_differs_from_what_was_pinned(tmp_path: Path) -> None:
    report = finished(tmp_path, SAID)
    assert report.run.facts.drift == (SAID,)
    assert report.run.exit_code == 0
    said = terminal(report, 120, colour=False)
    assert "what ran was not what was pinned (--allow-drift)" in said.splitlines()[-1]
    assert SAID in " ".join(said.split())
    summary = (report.folder / "summary.md").read_text()
    assert "what ran was not what was pinned" in summary.splitlines()[0]
    assert "## What ran was not what was pinned" in summary


def test_one_that_did_not_drift_says_nothing_of_it(tmp_path: Path) -> None:
    report = finished(tmp_path)
    assert report.run.facts.drift == ()
    assert "pinned" not in terminal(report, 120, colour=False)


def test_reports_from_before_it_was_looked_at_can_still_be_read(tmp_path: Path) -> None:
    body = json.loads((finished(tmp_path).folder / "run.json").read_text())
    del body["drift"]
    assert RunInfo.decode(json.dumps(body)).facts.drift == ()
