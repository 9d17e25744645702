"""What changed since a baseline: verdicts, known issues, and above all what is no longer covered. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from raykueue.errors import EXIT_INFRA
from raykueue.model.findings import Verdict
from raykueue.report.gate.evidence import ran
from raykueue.report.gate.judging import Judged, Objection
from raykueue.report.gate.required import Cell, Retired
from raykueue.report.record import Record
from raykueue.report.run_info import LoadedReport
from raykueue.report.verdict import DEFECTS, NOT_RUN
from raykueue.report.wording import known_ids

_UNCOVERED = NOT_RUN | {Verdict.INFRA}


@dataclass(frozen=True, slots=True)
class Change:
    """Of one test on one pair, between the baseline and now."""

    kind: str
    """newly failing, no longer failing, newly uncovered, newly covered, newly known, no longer known, other verdict,
    other Kubernetes"""
    cell: Cell
    test: str
    """Its id; empty if it is about the cell as a whole."""
    what: str

    def __str__(self) -> str:
        return f"{self.test}: {self.what}" if self.test else self.what


def changes(
    baseline: Mapping[Cell, Sequence[LoadedReport]], now: Iterable[Judged], lined_up: Mapping[Cell, Cell]
) -> list[Change]:
    """Of every cell that is there or required now; for the rest of the baseline see `baseline.beside`."""
    found: list[Change] = []
    for judged in now:
        then = lined_up.get(judged.cell, judged.cell)
        before = {record.id: record for report in baseline.get(then, ()) for record in ran(report.records)}
        after = judged.by_id
        if then != judged.cell:
            what = f"the baseline ran on Kubernetes {then.kubernetes}"
            found.append(Change("other Kubernetes", judged.cell, "", what))
        if before and after:
            for test in dict.fromkeys((*before, *after)):
                found += _of_test(judged.cell, test, before.get(test), after.get(test))
        elif before:
            what = f"all of it: {len(before)} tests were there, and now there is no report"
            found.append(Change("newly uncovered", judged.cell, "", what))
        elif after:
            what = f"all of it: {len(after)} tests, and the baseline has none"
            found.append(Change("newly covered", judged.cell, "", what))
    return found


def uncovered(found: Iterable[Change], retired: Sequence[Retired], today: datetime.date) -> Iterator[Objection]:
    """Objections to coverage that went away, unless the tests are retired by ci/required.toml."""
    for change in found:
        if change.kind == "newly uncovered" and not any(each.covers(change.test, today) for each in retired):
            yield Objection(EXIT_INFRA, "uncovered", str(change.cell), str(change))


def _of_test(cell: Cell, test: str, before: Record | None, after: Record | None) -> Iterator[Change]:
    was, now = _word(before), _word(after)
    covered_before, covered_now = (one is not None and one.verdict not in _UNCOVERED for one in (before, after))
    issues_before, issues_now = (known_ids(one) if one is not None else [] for one in (before, after))
    failed_before, failed_now = (one is not None and one.verdict in DEFECTS for one in (before, after))
    if covered_before != covered_now:
        kind = "newly covered" if covered_now else "newly uncovered"
        yield Change(kind, cell, test, f"was {was}, is {now}")
    elif failed_before != failed_now:
        yield Change("newly failing" if failed_now else "no longer failing", cell, test, f"was {was}, is {now}")
    elif was != now and not issues_before and not issues_now:
        yield Change("other verdict", cell, test, f"was {was}, is {now}")
    for issue in issues_now:
        if issue not in issues_before:
            yield Change("newly known", cell, test, f"shows {issue}")
    for issue in issues_before:
        if covered_now and issue not in issues_now:
            yield Change("no longer known", cell, test, f"showed {issue}")


def _word(record: Record | None) -> str:
    return record.verdict.value if record is not None else "not there"
