"""Which reports a gate believes: found, read whole, and of one suite. All others are refused, each with its reason.

Digests show damage, not forgery: who can write a report can write its digests, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from raykueue.errors import EXIT_EMPTY, EXIT_INFRA, EXIT_USAGE, UsageError
from raykueue.model.findings import Verdict
from raykueue.model.versions import Versions
from raykueue.report.errors import ReportError
from raykueue.report.files import PLAN, RECORDS, RUN, sha256
from raykueue.report.gate.required import Cell
from raykueue.report.reading import load
from raykueue.report.record import Record
from raykueue.report.run_info import FORMAT, LoadedReport, RunInfo

MATRIX = "matrix.json"
"""What `raykueue matrix run` leaves beside the reports of its pairs."""
_MARKS = frozenset({PLAN, RECORDS, RUN})
"""A folder that has one of these is meant to be a report, even if it is none."""

_JUDGED = frozenset({Verdict.PASS, Verdict.FAIL, Verdict.KNOWN, Verdict.FIXED})


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a gate does not believe, or can't use."""

    code: int
    """What the gate exits with if nothing worse comes: 3 damaged or unfinished, 4 not what was asked about, 5 empty."""
    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Reports that belong together, by what they are about."""

    reports: tuple[LoadedReport, ...]
    refusals: tuple[Refusal, ...]

    def cells(self) -> dict[Cell, list[LoadedReport]]:
        """The reports of each pair and kind of cluster: one, or the shards of one."""
        cells: dict[Cell, list[LoadedReport]] = {}
        for report in self.reports:
            cells.setdefault(cell_of(report.run), []).append(report)
        return cells


def cell_of(run: RunInfo) -> Cell:
    """What a run was about."""
    return Cell.of(run.pair, run.backend)


def ran(records: Iterable[Record]) -> list[Record]:
    """Records of tests, not of the run itself."""
    return [record for record in records if not record.of_run]


def gather(folders: Sequence[Path]) -> Evidence:
    """Reads every report that is one of these folders or below one.

    What can't be read is a refusal, never an error: the other reports may prove a failure all the same.
    """
    reports: dict[Path, LoadedReport] = {}
    refusals: list[Refusal] = []
    for folder in folders:
        if not folder.is_dir():
            refusals.append(Refusal(EXIT_USAGE, str(folder), "there is no such folder"))
            continue
        found = [*_found(folder.resolve())]
        if not found:
            refusals.append(Refusal(EXIT_EMPTY, str(folder), "no report is in it: no run wrote one here"))
        for path in found:
            if isinstance(path, Refusal):
                refusals.append(path)
                continue
            if path in reports:
                refusals.append(Refusal(EXIT_USAGE, str(path), "it is given twice"))
                continue
            read = _read(path)
            if isinstance(read, Refusal):
                refusals.append(read)
            else:
                reports[path] = read
    return Evidence(tuple(reports.values()), tuple(refusals))


def of_this_suite(evidence: Evidence, versions: Versions, suite: str) -> Evidence:
    """Without the reports that nothing can be concluded from here: of another suite, lock or release, or empty."""
    kept: list[LoadedReport] = []
    refusals = list(evidence.refusals)
    for report in evidence.reports:
        refusal = _foreign(report, versions, suite) or _unfit(report)
        if refusal is None:
            kept.append(report)
        else:
            refusals.append(refusal)
    return Evidence(tuple(kept), tuple(refusals))


def that_fit(evidence: Evidence) -> Evidence:
    """The same, with a refusal for each two that contradict each other: other commits or profiles, a test run twice."""
    refusals = list(evidence.refusals)
    for cell, reports in evidence.cells().items():
        seen: dict[str, Path] = {}
        for report in reports:
            twice = [record.id for record in ran(report.records) if record.id in seen]
            if twice:
                why = f"{twice[0]} has a record in {seen[twice[0]].name}, too, on {cell}: which one counts?"
                refusals.append(Refusal(EXIT_USAGE, str(report.folder), why))
            seen |= {record.id: report.folder for record in ran(report.records)}
        refusals += _mixed(reports, "profile", [report.run.facts.profile for report in reports])
        refusals += _mixed(reports, "tier", [report.run.facts.tier for report in reports])
    reports = list(evidence.reports)
    return Evidence(
        evidence.reports,
        (*refusals, *_mixed(reports, "commit of the suite", [report.run.facts.commit for report in reports])),
    )


def _mixed(reports: Sequence[LoadedReport], what: str, values: Sequence[str]) -> Iterator[Refusal]:
    for report, value in zip(reports, values, strict=True):
        if value != values[0]:
            why = f"its {what} is {value or 'unknown'}, that of {reports[0].folder.name} is {values[0] or 'unknown'}"
            yield Refusal(EXIT_USAGE, str(report.folder), why)


def _found(folder: Path) -> Iterator[Path | Refusal]:
    """Folders that are, or were meant to be, reports; `latest` is a link, and links are not followed.

    Where a matrix ran, those that it counts: a pair that was run again has older reports beside the one that counts.
    """
    for path, folders, files in os.walk(folder):
        folders.sort()
        if _MARKS.intersection(files):
            folders.clear()
            yield Path(path)
        elif MATRIX in files:
            folders.clear()
            yield from _of_matrix(Path(path))


def _of_matrix(folder: Path) -> Iterator[Path | Refusal]:
    try:
        results = json.loads((folder / MATRIX).read_text("utf-8"))["results"]
        told = [(str(pair), str(ran["report"]), str(ran["reason"])) for pair, ran in results.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        yield Refusal(EXIT_INFRA, str(folder / MATRIX), f"it can't be read: {error!r}")
        return
    for pair, report, reason in told:
        if report:
            yield folder / report
        if reason or not report:
            yield Refusal(EXIT_INFRA, str(folder), f"{pair}: {reason or 'it left no report'}")


def _read(folder: Path) -> LoadedReport | Refusal:
    other = _other_format(folder / RUN)
    if other is not None:
        why = f"{RUN} is of format {other}, this gate reads {FORMAT}: another version of the suite wrote it"
        return Refusal(EXIT_USAGE, str(folder), why)
    try:
        return load(folder)
    except ReportError as error:
        return Refusal(EXIT_INFRA, str(folder), str(error).removeprefix(f"{folder}: "))


def _other_format(path: Path) -> object | None:
    """The format of a run.json of another version; None if it is ours, or if it is none at all."""
    try:
        body = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    found: object = body.get("format") if isinstance(body, dict) else None
    return None if found == FORMAT else found


def _foreign(report: LoadedReport, versions: Versions, suite: str) -> Refusal | None:
    run, where = report.run, str(report.folder)
    if run.facts.suite_version != suite:
        why = f"suite {run.facts.suite_version or 'of unknown version'} wrote it, this is the gate of suite {suite}"
        return Refusal(EXIT_USAGE, where, why)
    try:
        pair = versions.made_of(run.pair)
    except UsageError as error:
        return Refusal(EXIT_USAGE, where, str(error))
    return _other_pins(report, versions.digest(pair))


def _other_pins(report: LoadedReport, lock: str) -> Refusal | None:
    if drift := report.run.facts.drift:
        return Refusal(EXIT_USAGE, str(report.folder), f"what ran was not what was pinned (--allow-drift): {drift[0]}")
    seen = report.run.facts.lock_digest
    if not seen and not any(record.verdict in _JUDGED for record in ran(report.records)):
        return None  # the cluster did not start; what its records say of that is what matters
    if seen == lock:
        return None
    why = f"what it ran was pinned by another versions.toml (digest {seen[:12] or 'unknown'}, here {lock[:12]})"
    return Refusal(EXIT_USAGE, str(report.folder), why)


def _unfit(report: LoadedReport) -> Refusal | None:
    run, where = report.run, str(report.folder)
    if run.wall_seconds < 0:
        return Refusal(EXIT_INFRA, where, f"it finished ({run.finished}) before it started ({run.started})")
    if not ran(report.records):
        # A run without a plan has a problem, if it has anything at all: the problem's record says it better.
        return None if report.records else Refusal(EXIT_EMPTY, where, "no test was selected, so nothing ran")
    return None


def same(one: LoadedReport, other: LoadedReport) -> bool:
    """Both are the same run, wherever they lie."""
    return sha256(one.folder / RUN) == sha256(other.folder / RUN)
