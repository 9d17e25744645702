"""The folder of one run's report while it is written; only the owner does.

    plan.json       every id that was selected, before the first test
    records.jsonl   one record a line, on disk before the next test is reported: a crash loses at most the last line
    summary.md, junit.xml
    run.json        last of all: what the run was, and the digest of every other file. Without it the run did not finish

`finish` writes one record per planned test into records.jsonl (see settle), so that the file is complete by itself.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from raykueue.report.errors import ReportError
from raykueue.report.files import JUNIT, LATEST, PLAN, RECORDS, RUN, SUMMARY, link, sha256, write
from raykueue.report.junit import junit_xml
from raykueue.report.record import Record, encode, utc
from raykueue.report.run_info import LoadedReport, RunFacts, RunInfo
from raykueue.report.settle import problem_records, settle
from raykueue.report.summary import markdown
from raykueue.report.verdict import counts, exit_code


class ReportFolder:
    """One run's report while it is being written. For one thread of one process."""

    def __init__(self, path: Path, pair: Mapping[str, str], backend: str, started: datetime) -> None:
        """Use `create`."""
        self.path = path
        self._pair = dict(pair)
        self._backend = backend
        self._started = started
        self._planned: list[str] | None = None
        self._records: list[Record] = []
        self._finished = False

    @classmethod
    def create(cls, base: Path, pair: Mapping[str, str], backend: str, now: datetime) -> ReportFolder:
        """Makes `<base>/<UTC>-kueue<version>-kuberay<version>-<backend>`, a new folder even within one second.

        Raises:
            ReportError: the folder can't be made.
        """
        stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        name = f"{stamp}-kueue{pair['kueue']}-kuberay{pair['kuberay']}-{backend}"
        number = 1
        while True:
            path = base / (name if number == 1 else f"{name}-{number}")
            try:
                path.mkdir(parents=True)
            except FileExistsError as error:
                if not path.exists():  # a file stands where the base should be
                    raise ReportError(f"{base}: expected a folder for reports ({error})") from error
                number += 1
            except OSError as error:
                raise ReportError(f"{path}: the report's folder can't be made ({error})") from error
            else:
                return cls(path, pair, backend, now)

    def plan(self, ids: Sequence[str]) -> None:
        """Writes down which tests were selected: each of them will have exactly one record.

        Raises:
            ReportError: there is a plan already, an id comes twice, or the disk refuses.
        """
        if self._planned is not None:
            raise ReportError(f"{self.path}: this run has its plan already")
        if len(set(ids)) != len(ids):
            twice = next(test for index, test in enumerate(ids) if test in ids[:index])
            raise ReportError(f"{self.path}: {twice} is planned twice; each test can have one record only")
        write(self.path / PLAN, json.dumps({"ids": list(ids)}, indent=1) + "\n")
        self._planned = list(ids)

    def add(self, record: Record) -> None:
        """Appends a record, and returns when the disk has it.

        Raises:
            ReportError: the record breaks its schema, the run is finished, or the disk refuses.
        """
        if self._finished:
            raise ReportError(f"{self.path}: the report is finished; the record of {record.id} came too late")
        line = encode(record)
        self._records.append(record)
        try:
            with (self.path / RECORDS).open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ReportError(f"{self.path / RECORDS}: the record of {record.id} can't be written ({error})") from error

    def finish(
        self, facts: RunFacts, now: datetime, *, problems: Sequence[str] = (), interrupted: bool = False
    ) -> LoadedReport:
        """Settles the records, writes every view and run.json, and lets `latest` point here.

        Everything else that belongs to the report (journals, logs) must be in the folder already: its digest is taken.

        Args:
            facts: what the records don't know.
            now: when the run ended.
            problems: sentences about what went wrong outside any test; each becomes an infra record.
            interrupted: somebody stopped the run before all tests had ended.

        Raises:
            ReportError: it is finished already, a value breaks its schema, or the disk refuses.
        """
        if self._finished:
            raise ReportError(f"{self.path}: the report is finished already")
        if self._planned is None:
            self.plan([])
        planned, at = self._planned or [], utc(now)
        everything = [*self._records, *problem_records(problems, at)]
        records = settle(planned, everything, interrupted=interrupted, at=at)
        run = RunInfo(
            pair=self._pair,
            backend=self._backend,
            started=utc(self._started),
            finished=at,
            facts=facts,
            planned=len(planned),
            counts={verdict.value: number for verdict, number in counts(records).items()},
            interrupted=interrupted,
            exit_code=exit_code(records, interrupted=interrupted),
        )
        report = LoadedReport(self.path, run, records)
        write(self.path / RECORDS, "".join(encode(record) + "\n" for record in records))
        write(self.path / SUMMARY, markdown(report))
        write(self.path / JUNIT, junit_xml(report))
        report = replace(report, run=replace(run, files=_digests(self.path)))
        write(self.path / RUN, report.run.encode())
        self._finished = True
        link(self.path.parent / LATEST, self.path.name)
        return report


def _digests(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): sha256(path) for path in files if path != folder / RUN}
