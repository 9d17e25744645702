"""Matrices that checks run, and what they leave: grids, verdicts, and what a pair costs beyond its tests."""

from __future__ import annotations

import json
import re
import shutil
import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from ci.acceptance.ground import Ground, Outcome, expect
from raykueue.audit.explanations import KnownIssue
from raykueue.model.findings import Verdict
from raykueue.report.reading import load
from raykueue.report.record import Record

PATIENCE = 3 * 3600.0
"""For a matrix, with binaries that have to be built first."""
EXTRA_SECONDS = 10.0
"""What a pair is meant to take beyond its tests: to start and end a cluster, and to write its report. Told, not held:
what a process takes to start depends on what else the machine does."""


def matrix(ground: Ground, folder: str, *words: str, code: int | None = None) -> Outcome:
    """Runs one anew. Without `code` a pair may have failed, which is a verdict, but all must have been judged."""
    shutil.rmtree(ground.root / folder, ignore_errors=True)
    run = ground.start("raykueue", "matrix", "run", *words, "--out", folder)
    allowed = (0, 1) if code is None else (code,)
    ended = run.wait(PATIENCE).code
    keep(ground, folder)
    return ground.finish(run, ended if ended in allowed else allowed[0])


def keep(ground: Ground, folder: str) -> None:
    """Reports of pairs that are not green, beside the log: the clone is removed, and may never show it again."""
    if not (ground.root / folder / "grid.json").exists():
        return
    for row in grid_of(ground, folder):
        if row["report"] and row["verdict"] != "green":
            report = Path(row["report"])
            kept = ground.log.with_suffix(".reports") / Path(folder).name / report.name
            shutil.copytree(report, kept, symlinks=True, dirs_exist_ok=True)


def grid_of(ground: Ground, folder: str) -> list[dict[str, Any]]:
    """The rows of a matrix."""
    body = json.loads((ground.root / folder / "grid.json").read_text(encoding="utf-8"))
    return cast("list[dict[str, Any]]", body["pairs"])


def judged(grid: Sequence[dict[str, Any]]) -> None:
    """Raises Miss if a pair has no verdict."""
    bad = [row for row in grid if row["verdict"] not in ("green", "FAILED", "n/a")]
    told = bad and f"{bad[0]['kueue']}+{bad[0]['kuberay']}: {bad[0]['verdict']}, {bad[0]['reason']}"
    expect(not bad, f"{len(bad)} pairs were not judged, the first is {told}")
    infra = [row for row in grid if any(counts.get("infra") for counts in row["suites"].values())]
    expect(not infra, f"{len(infra)} pairs have tests that were not judged")


def within(grid: Sequence[dict[str, Any]], outcome: Outcome, seconds: float) -> str:
    """Raises Miss if the pairs took longer than they may; else says what they took, and how much beyond their tests."""
    tested = sum(row["seconds"] for row in grid)
    green = sum(row["verdict"] == "green" for row in grid)
    extra = [beyond_tests(row["seconds"], load(Path(row["report"])).records) for row in grid]
    median = statistics.median(extra)
    said = (
        f"{green} of {len(grid)} green, {tested / 60:.0f} min of {outcome.seconds / 60:.0f} min without builds, a pair "
        f"beyond its tests {median:.1f} s (median, goal {EXTRA_SECONDS:.0f} s), {max(extra):.1f} s (max)"
    )
    expect(tested <= seconds, f"{said}: more than {seconds / 60:.0f} min")
    return said


def beyond_tests(seconds: float, records: Iterable[Record]) -> float:
    """Of the seconds of a pair's process, those before its first test began and after its last one ended.

    A cluster starts while the first tests wait for it, so part of its start counts as theirs.
    """
    tests = [(datetime.fromisoformat(one.started).timestamp(), one.seconds) for one in records if not one.of_run]
    return seconds - (max(start + lasted for start, lasted in tests) - min(start for start, _ in tests))


def verdicts(ground: Ground, issues: Iterable[KnownIssue], *folders: str) -> dict[str, dict[str, str]]:
    """Pair → test → what it came to, in a word that is the same in every run (see `lasting`)."""
    sometimes = frozenset(f"known:{issue.id}" for issue in issues if issue.occurs == "sometimes")
    found: dict[str, dict[str, str]] = {}
    for folder in folders:
        for report in sorted(path.parent for path in (ground.root / folder).glob("pairs/*/*embedded/records.jsonl")):
            found[report.parent.name] = {one.id: lasting(one, sometimes) for one in load(report).records}
    return found


def lasting(record: Record, sometimes: frozenset[str]) -> str:
    """Its verdict, and which issues it shows, but for those that show only sometimes: with these it may also pass."""
    shown = sorted({one.explained_by for one in record.findings if one.explained_by.startswith("known:")} - sometimes)
    if record.verdict is Verdict.KNOWN and not shown:
        return "pass"
    return " ".join([record.verdict.value, *shown])


def rows(collected: Outcome) -> list[list[str]]:
    """Pair, class and verdict of each row of a printed grid."""
    lines = (line.replace(" * ", "   ").split() for line in collected.text.splitlines())
    return [words[:3] for words in lines if words and re.fullmatch(r"[\d.]+\+[\d.]+", words[0])]
