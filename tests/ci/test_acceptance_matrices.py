"""What the acceptance checks of matrices read out of reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ci.acceptance.ground import Ground, Miss, Outcome
from ci.acceptance.matrices import beyond_tests, keep, lasting, rows, verdicts, within
from ci.acceptance.pairs import PAIRS, PINNED_PAIRS
from raykueue.matrix.selection import choose
from raykueue.model.findings import Verdict
from raykueue.report.reading import load
from raykueue.toolchain.lock import load_versions
from tests.report.gate.reports import write
from tests.report.samples import finding, record

SOMETIMES = frozenset({"known:rare"})


def test_the_numbers_of_pairs_are_those_of_versions_toml() -> None:
    versions = load_versions()
    assert (len(choose("all", versions)), len(choose("pinned", versions))) == (PAIRS, PINNED_PAIRS)


def test_a_pair_costs_what_is_before_its_first_test_and_after_its_last() -> None:
    first = record("a", started="2026-11-05T10:15:02.000Z", phases={"setup": 1.0, "call": 9.0})
    last = record("b", started="2026-11-05T10:15:08.000Z", phases={"call": 12.0})
    assert beyond_tests(25.5, [last, first]) == pytest.approx(7.5)


def known(*issues: str) -> Any:
    return record(verdict=Verdict.KNOWN, reason="known", findings=tuple(finding(f"known:{name}") for name in issues))


def test_a_defect_that_shows_sometimes_is_as_good_as_none_and_one_that_always_does_is_not() -> None:
    assert lasting(known("rare"), SOMETIMES) == lasting(record(), SOMETIMES) == "pass"
    assert lasting(known("rare", "always"), SOMETIMES) == lasting(known("always"), SOMETIMES) == "known known:always"
    assert lasting(record(verdict=Verdict.FAIL, reason="why"), SOMETIMES) == "fail"


def test_verdicts_are_of_every_pair_in_every_shard(tmp_path: Path) -> None:
    ground = Ground(tmp_path, tmp_path / "state", tmp_path / "temporary", tmp_path / "log")
    for place in ("first/pairs/a", "second/pairs/b"):
        write(tmp_path / place, [record("suites/t.py::test_a")])
    assert verdicts(ground, [], "first", "second") == {pair: {"suites/t.py::test_a": "pass"} for pair in "ab"}


def test_reports_of_pairs_that_are_not_green_outlive_the_clone(tmp_path: Path) -> None:
    ground = Ground(tmp_path / "clone", tmp_path / "state", tmp_path / "temporary", tmp_path / "some.log")
    keep(ground, "build/all")
    assert not (tmp_path / "some.reports").exists()
    reports = {verdict: write(ground.root / "build/all/pairs" / verdict) for verdict in ("green", "FAILED")}
    every = [{"verdict": verdict, "report": str(report)} for verdict, report in reports.items()]
    grid = json.dumps({"pairs": [*every, {"verdict": "INFRA", "report": ""}]})
    (ground.root / "build/all/grid.json").write_text(grid, encoding="utf-8")
    keep(ground, "build/all")
    kept = tmp_path / "some.reports" / "all"
    assert [path.name for path in kept.iterdir()] == [reports["FAILED"].name]
    assert load(kept / reports["FAILED"].name).records == load(reports["FAILED"]).records


def test_a_grid_is_read_row_by_row() -> None:
    text = "PAIR CLASS\n0.19.2+1.6.2 * pinned green 4\n0.18.3+1.5.1   supported  FAILED 3\n\n2 pairs\n"
    assert rows(Outcome(0, text, 1.0)) == [["0.19.2+1.6.2", "pinned", "green"], ["0.18.3+1.5.1", "supported", "FAILED"]]


def test_pairs_take_no_longer_than_they_may_and_what_their_clusters_take_is_told(tmp_path: Path) -> None:
    report = write(tmp_path, [record("a", phases={"call": 10.0})])
    grid = [{"seconds": each, "verdict": "green", "report": str(report)} for each in (11, 12, 25)]
    told = within(grid, Outcome(0, "", 70), 60)
    assert told.endswith("beyond its tests 2.0 s (median, goal 10 s), 15.0 s (max)")
    with pytest.raises(Miss, match="more than 0 min"):
        within(grid, Outcome(0, "", 70), 20)
