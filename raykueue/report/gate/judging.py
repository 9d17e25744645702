"""Whether a gate opens: required against recorded, and every record against what may be released upon. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from raykueue.audit.explanations import Allowance, KnownIssue, overdue
from raykueue.audit.judge import fixed
from raykueue.errors import EXIT_EMPTY, EXIT_FAILED, EXIT_INFRA, EXIT_OK, EXIT_USAGE
from raykueue.model.applicability import doubts, excuses
from raykueue.model.findings import Verdict
from raykueue.report.gate.consistency import contradictions, unfounded
from raykueue.report.gate.evidence import Refusal, ran
from raykueue.report.gate.required import Cell
from raykueue.report.known import shown
from raykueue.report.record import Record
from raykueue.report.run_info import LoadedReport
from raykueue.report.verdict import NOT_RUN
from raykueue.report.wording import one_line, told

_PRECEDENCE = (EXIT_USAGE, EXIT_FAILED, EXIT_INFRA, EXIT_EMPTY)
"""The first that occurs is the gate's exit code. A question that was put wrongly has no answer, so usage is first; then
as in verdict.py: what is proven outweighs what could not be found out."""


@dataclass(frozen=True, slots=True)
class Objection:
    """One reason for which a gate stays closed."""

    code: int
    kind: str
    """In a word or two: failed, infra, missing, …"""
    where: str
    """A cell, or a folder."""
    what: str
    """In a sentence: the test, and what is wrong."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One pair on one kind of cluster: its records, of all shards together."""

    cell: Cell
    records: tuple[Record, ...]
    required: Mapping[str, bool]
    """Ids → whether they must run."""
    reports: tuple[LoadedReport, ...] = ()

    @property
    def by_id(self) -> dict[str, Record]:
        """Of tests."""
        return {record.id: record for record in ran(self.records)}


def together(
    cells: Mapping[Cell, Sequence[LoadedReport]], required: Mapping[Cell, Mapping[str, bool]]
) -> tuple[Judged, ...]:
    """Every cell that is there or required, in order; the newest releases first."""
    every = dict.fromkeys((*required, *sorted(cells, reverse=True)))
    return tuple(
        Judged(
            cell,
            tuple(record for report in cells.get(cell, ()) for record in report.records),
            required.get(cell, {}),
            tuple(cells.get(cell, ())),
        )
        for cell in every
    )


def objections(judged: Judged, issues: Sequence[KnownIssue], allowances: Sequence[Allowance]) -> Iterator[Objection]:
    """Everything that is wrong in one cell."""
    where = str(judged.cell)
    if not judged.reports:
        number = len(judged.required)
        yield Objection(EXIT_INFRA, "missing", where, f"no report of it: {number} required tests have not run")
        return
    for report in judged.reports:
        if report.run.interrupted:
            yield Objection(EXIT_INFRA, "interrupted", where, f"{report.folder.name}: the run was interrupted")
    for record in judged.records:
        yield from _of_record(record, where)
        yield from _of_absence(record, judged.cell)
        for what in contradictions(record):
            yield Objection(EXIT_INFRA, "contradictory", where, f"{record.id}: {what}")
        for what in unfounded(record, judged.cell.pair, issues, allowances):
            yield Objection(EXIT_FAILED, "unexplained", where, f"{record.id}: {what}")
    yield from _of_required(judged)
    yield from _of_vanished(judged, issues)
    if all(record.verdict in NOT_RUN or record.of_run for record in judged.records):
        yield Objection(EXIT_EMPTY, "empty", where, "nothing ran: every test was skipped or found not to apply")


def of_reviews(issues: Sequence[KnownIssue], today: datetime.date) -> Iterator[Objection]:
    """Known issues that somebody should have looked at by now, whatever the day of the run was."""
    for issue in overdue(list(issues), today):
        what = f"was to be reviewed by {issue.review}: look whether it is still true ({issue.link})"
        yield Objection(EXIT_FAILED, "expired", f"known issue {issue.id}", what)


def of_refusals(refusals: Iterable[Refusal], whose: str = "") -> Iterator[Objection]:
    """Reports that are not believed, and what failed in a run before the report that counts."""
    for refusal in refusals:
        kind = "failed" if refusal.code == EXIT_FAILED else "refused"
        yield Objection(refusal.code, kind, f"{whose}{refusal.where}", refusal.why)


def exit_code(found: Iterable[Objection]) -> int:
    """0 without objections, else the code that comes first in order of precedence."""
    codes = {objection.code for objection in found}
    return next((code for code in _PRECEDENCE if code in codes), EXIT_OK)


def _of_record(record: Record, where: str) -> Iterator[Objection]:
    reason = one_line(record.reason or record.failure, 300)
    kinds = {Verdict.FAIL: "failed", Verdict.FIXED: "vanished", Verdict.INFRA: "infra"}
    if record.verdict in kinds:
        code = EXIT_INFRA if record.verdict is Verdict.INFRA else EXIT_FAILED
        yield Objection(code, kinds[record.verdict], where, f"{record.id}: {reason}")
    if record.verdict is not Verdict.FAIL:
        # Of a test that failed, the finding is the reason.
        for one in record.findings:
            if one.raised:
                yield Objection(EXIT_FAILED, "unexplained", where, f"{record.id}: {one_line(told(one), 300)}")


def _of_absence(record: Record, cell: Cell) -> Iterator[Objection]:
    """Because of what a test was not applicable is looked up again: a gate that is open, or unknown, is no reason."""
    if record.verdict is Verdict.NOT_APPLICABLE:
        for why in doubts(record.absences, cell.pair, cell.backend):
            what = f"{record.id}: it says that it is not applicable ({one_line(record.reason)}), but {why}"
            yield Objection(EXIT_INFRA, "not applicable", str(cell), what)


def _of_required(judged: Judged) -> Iterator[Objection]:
    by_id, where = judged.by_id, str(judged.cell)
    for test, must_run in judged.required.items():
        record = by_id.get(test)
        if record is None:
            yield Objection(EXIT_INFRA, "missing", where, f"{test}: required, and no report has it")
        elif record.verdict is Verdict.SKIPPED:
            yield Objection(EXIT_INFRA, "skipped", where, f"{test}: required, and skipped: {one_line(record.reason)}")
        elif record.verdict is Verdict.NOT_APPLICABLE:
            what = f"{test}: required on every such pair, and not applicable: {one_line(record.reason)}"
            if must_run or not any(map(excuses, record.absences)):
                yield Objection(EXIT_INFRA, "not applicable", where, what)


def _of_vanished(judged: Judged, issues: Sequence[KnownIssue]) -> Iterator[Objection]:
    """Also what no shard alone can tell: that none of all the tests that show an issue showed it."""
    told_by_run = {record.id for record in judged.records}
    for issue in fixed(issues, judged.cell.pair, judged.by_id, shown(judged.records)):
        if f"run::fixed-{issue.id}" not in told_by_run:
            what = f"known issue {issue.id} no longer shows ({issue.link}): remove or narrow it in known-issues.toml"
            yield Objection(EXIT_FAILED, "vanished", str(judged.cell), what)
