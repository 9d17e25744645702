from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from raykueue.errors import UsageError
from raykueue.model.findings import Verdict
from raykueue.pages.command import FOLDER, LAST, README, run, support_table
from raykueue.pages.support import BEGIN, END, Last, into, read, table, write
from raykueue.toolchain.lock import load_versions
from tests.report.gate import reports
from tests.report.gate.reports import IDS, a_record

VERSIONS = load_versions()
OLD = VERSIONS.pair(kueue="0.10.1", kuberay="1.3.2")


def last(**changes: Any) -> Last:
    values: dict[str, Any] = {
        "date": "2026-11-30",
        "profile": "core",
        "backend": "embedded",
        "exit_code": 0,
        "counts": {"pass": 80},
    }
    return Last(**{**values, **changes})


def cell(results: dict[str, Last]) -> str:
    """Of the default pair."""
    row = next(line for line in table(VERSIONS, results).splitlines() if line.startswith("| 0.19.2 |"))
    return row.split("|")[2].strip()


def test_the_readme_is_current() -> None:
    assert (FOLDER.parent / README).read_text(encoding="utf-8") == support_table(), "run `raykueue docs support`"


def test_every_pair_has_its_class() -> None:
    text = table(VERSIONS, {})
    words = re.findall(r"\b(pinned|supported|exploratory)\b", text)
    assert sorted(words) == sorted(pair.klass for pair in VERSIONS.pairs)
    assert "pinned, default" in text
    assert "No results have been taken over yet." in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (last(), "green"),
        (last(counts={"pass": 70, "known": 10}), "green, 10 known"),
        (last(exit_code=1, counts={"fail": 1, "fixed": 1}), "**2 failures**"),
        (last(exit_code=1, counts={"fail": 1}), "**1 failure**"),
        (last(exit_code=3, counts={"infra": 1}), "not judged"),
        (last(exit_code=5, counts={"not-applicable": 9}), "nothing applies"),
    ],
)
def test_a_pair_says_what_its_last_run_came_to(one: Last, words: str) -> None:
    assert cell({"0.19.2+1.6.2": one}) == f"pinned, default: {words}"


def test_the_results_are_as_they_are_written() -> None:
    results = {"0.19.2+1.6.2": last(), "0.10.1+1.3.2": last(exit_code=1)}
    assert read(write(results)) == results
    path = FOLDER / LAST
    if path.exists():
        assert write(read(path.read_text(encoding="utf-8"))) == path.read_text(encoding="utf-8")


def test_only_what_is_between_the_marks_is_replaced() -> None:
    assert into(f"a\n{BEGIN}\nold\n{END}\nb\n", "new\n") == f"a\n{BEGIN}\nnew\n{END}\nb\n"
    with pytest.raises(UsageError, match=r"README\.md: expected the lines"):
        into("a\n", "new\n")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text(f"# x\n{BEGIN}\n{END}\n")
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


def call(docs: Path, *, report: Path | None = None, check: bool = False) -> int:
    return run(Namespace(page="support", report=report, check=check), docs)


def test_results_of_many_pairs_are_taken_over_and_others_stay(docs: Path, tmp_path: Path) -> None:
    reports.write(tmp_path / "first", pair=OLD)
    reports.write(tmp_path / "second", [a_record(IDS[0], verdict=Verdict.FAIL, reason="2 pods too many")])
    assert call(docs, report=tmp_path / "first") == 0
    assert call(docs, report=tmp_path / "second") == 0
    assert set(read((docs / LAST).read_text())) == {"0.10.1+1.3.2", "0.19.2+1.6.2"}
    readme = (docs.parent / "README.md").read_text()
    assert "exploratory: green |" in readme
    assert "pinned, default: **1 failure** |" in readme
    assert call(docs, check=True) == 0
    (docs / LAST).unlink()
    assert call(docs, check=True) == 1


def test_what_is_damaged_or_was_interrupted_is_not_taken_over(docs: Path, tmp_path: Path) -> None:
    reports.write(tmp_path / "cut", interrupted=True)
    with pytest.raises(UsageError, match="was interrupted"):
        call(docs, report=tmp_path / "cut")
    (reports.write(tmp_path / "damaged") / "plan.json").write_text("{}")
    with pytest.raises(UsageError, match="only whole results"):
        call(docs, report=tmp_path / "damaged")
    assert not (docs / LAST).exists()
