"""From the folder of a finished report back to a value, believing nothing that can be checked."""

from __future__ import annotations

import json
from pathlib import Path

from raykueue.model.findings import Verdict
from raykueue.report.errors import ReportError
from raykueue.report.files import PLAN, RECORDS, RUN, read, sha256
from raykueue.report.record import Record, decode
from raykueue.report.run_info import LoadedReport, RunInfo
from raykueue.report.verdict import counts, exit_code


def load(folder: Path) -> LoadedReport:
    """Reads a finished report, and believes nothing that it can check: schemas, digests, completeness, counts.

    Raises:
        ReportError: there is none, the run did not finish, or a file is not what the run wrote.
    """
    folder = folder.resolve()
    if not folder.is_dir():
        raise ReportError(f"{folder}: there is no report; a run of the suite writes one")
    if not (folder / RUN).exists():
        raise ReportError(f"{folder}: the run did not finish (no {RUN}), or it is still running; {_so_far(folder)}")
    run = RunInfo.decode(read(folder / RUN))
    records = _read_records(folder / RECORDS)
    for name, digest in run.files.items():
        if not (folder / name).is_file():
            raise ReportError(f"{folder / name}: the run wrote this file, and it is missing")
        if sha256(folder / name) != digest:
            raise ReportError(f"{folder / name}: it was changed or damaged after the run (its digest differs)")
    for name in (PLAN, RECORDS):
        if name not in run.files:
            raise ReportError(f"{folder / RUN}: it has no digest of {name}, so the report proves nothing")
    _check_complete(folder, run, records)
    return LoadedReport(folder, run, records)


def _check_complete(folder: Path, run: RunInfo, records: tuple[Record, ...]) -> None:
    try:
        planned: list[str] = json.loads(read(folder / PLAN))["ids"]
    except (ValueError, KeyError, TypeError) as error:
        raise ReportError(f"{folder / PLAN}: expected {{'ids': […]}} ({error})") from error
    recorded = {record.id for record in records}
    if len(recorded) != len(records):
        raise ReportError(f"{folder / RECORDS}: a test has more than one record")
    expected = set(planned)
    for record in records:
        if not record.of_run and record.id not in expected and record.verdict is not Verdict.INFRA:
            raise ReportError(f"{folder / RECORDS}: {record.id} was not planned, yet its verdict is {record.verdict}")
    if lost := [test for test in planned if test not in recorded]:
        raise ReportError(f"{folder / RECORDS}: {len(lost)} planned tests have no record, the first is {lost[0]}")
    if run.planned != len(planned):
        raise ReportError(f"{folder / RUN}: it counts {run.planned} planned tests, the plan has {len(planned)}")
    counted = {verdict.value: number for verdict, number in counts(records).items()}
    if dict(run.counts) != counted:
        raise ReportError(f"{folder / RUN}: its counts are {dict(run.counts)}, the records say {counted}")
    code = exit_code(records, interrupted=run.interrupted)
    if run.exit_code != code:
        raise ReportError(f"{folder / RUN}: its exit code is {run.exit_code}, the records say {code}")


def _read_records(path: Path) -> tuple[Record, ...]:
    text = read(path)
    if text and not text.endswith("\n"):
        raise ReportError(f"{path}: the last line is cut short")
    records = []
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            records.append(decode(line))
        except ReportError as error:
            raise ReportError(f"{path}, line {number}: {error}") from error
    return tuple(records)


def _so_far(folder: Path) -> str:
    try:
        planned = len(json.loads((folder / PLAN).read_text("utf-8"))["ids"])
        recorded = (folder / RECORDS).read_bytes().count(b"\n")
    except (OSError, ValueError, KeyError, TypeError):
        return "it has no plan and records yet"
    return f"{recorded} of {planned} planned tests have a record in {RECORDS}"
