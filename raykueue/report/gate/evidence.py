"""Which reports there are, found and read whole. What can't be read is refused, with its reason.

Digests show damage, not forgery: who can write a report can write its digests, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from raykueue.errors import EXIT_EMPTY, EXIT_FAILED, EXIT_INFRA, EXIT_USAGE
from raykueue.matrix.matrix_file import MATRIX, MatrixFile
from raykueue.matrix.outcome import outcomes
from raykueue.matrix.selection import pair_id
from raykueue.report.errors import ReportError
from raykueue.report.files import PLAN, RECORDS, RUN, sha256
from raykueue.report.gate.required import Cell
from raykueue.report.reading import load
from raykueue.report.record import Record
from raykueue.report.run_info import FORMAT, LoadedReport, RunInfo

_MARKS = frozenset({PLAN, RECORDS, RUN})
"""A folder that has one of these is meant to be a report, even if it is none."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a gate does not believe, or can't use."""

    code: int
    """What the gate exits with if nothing worse comes: 1 failed in a run before, 3 damaged or unfinished, 4 not what
    was asked about, 5 empty."""
    where: str
    why: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Reports that belong together, by what they are about."""

    reports: tuple[LoadedReport, ...]
    refusals: tuple[Refusal, ...]
    waived: tuple[Refusal, ...] = ()
    """What would be refused, and counts because somebody said that it should."""

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
    """Each pair of a shard has a report that counts, by the checks of the matrix itself; or it is told why not.

    A report that does not count is read all the same: it may prove a failure.
    """
    try:
        matrix = MatrixFile.load(folder)
    except ReportError as error:
        yield Refusal(EXIT_INFRA, str(folder), str(error).removeprefix(f"{folder}/"))
        return
    if matrix.interrupted:
        yield Refusal(EXIT_INFRA, str(folder), "the matrix was interrupted")
    for one in outcomes(matrix):
        ran = matrix.results.get(pair_id(one.pair))
        if ran is not None and ran.report:
            yield matrix.folder / ran.report
            if one.report is None and not ran.reason:
                continue  # it can't be read, which is told where it is read
        if one.reason:
            code = EXIT_FAILED if one.code == EXIT_FAILED else EXIT_INFRA
            yield Refusal(code, str(folder), f"{pair_id(one.pair)}: {one.reason}")


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


def same(one: LoadedReport, other: LoadedReport) -> bool:
    """Both are the same run, wherever they lie."""
    return sha256(one.folder / RUN) == sha256(other.folder / RUN)
