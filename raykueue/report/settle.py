"""Which records a finished run has: exactly one for each planned test. Pure.

Whatever is missing, comes twice, or was never planned becomes `infra`, so that it can't be overlooked; what such a
record said before is kept in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from raykueue.model.findings import Verdict
from raykueue.report.record import RUN_PREFIX, Record, suite_of


def settle(planned: Sequence[str], records: Iterable[Record], *, interrupted: bool, at: str) -> tuple[Record, ...]:
    """One record per planned id, in the plan's order, then those that no plan has.

    Args:
        planned: ids, each once.
        records: in the order in which they were recorded.
        interrupted: somebody stopped the run; lost tests say so.
        at: the time that lost tests get, as `record.utc` writes it.
    """
    by_id: dict[str, list[Record]] = {}
    for record in records:
        by_id.setdefault(record.id, []).append(record)
    known = set(planned)
    settled = [_one(by_id[test]) if test in by_id else _lost(test, interrupted, at) for test in planned]
    for test, found in by_id.items():
        if test not in known:
            settled.append(_one(found) if test.startswith(RUN_PREFIX) else _unplanned(_one(found)))
    return tuple(settled)


def problem_records(problems: Sequence[str], at: str) -> list[Record]:
    """What went wrong outside any test, as records: `run::problem-1`, …"""
    return [
        Record(
            id=f"{RUN_PREFIX}problem-{number}",
            suite="run",
            sentence="The run itself works: cluster, recorder and report.",
            verdict=Verdict.INFRA,
            started=at,
            reason=problem,
        )
        for number, problem in enumerate(problems, 1)
    ]


def _one(found: Sequence[Record]) -> Record:
    first = found[0]
    if len(found) == 1:
        return first
    said = ", ".join(record.verdict.value for record in found)
    return dataclasses.replace(
        first,
        verdict=Verdict.INFRA,
        reason=f"{len(found)} records of one test, which said {said}: one was expected, none is trusted",
        failure="\n\n".join(f"{r.verdict.value}: {r.reason}\n{r.failure}".strip() for r in found),
        findings=tuple(judged for record in found for judged in record.findings),
        notes=tuple(dict.fromkeys(note for record in found for note in record.notes)),
    )


def _unplanned(record: Record) -> Record:
    said = f"it said {record.verdict.value}" + (f": {record.reason}" if record.reason else "")
    return dataclasses.replace(
        record,
        verdict=Verdict.INFRA,
        reason=f"not planned: this test has a record, but was not among those selected at the start ({said})",
    )


def _lost(test: str, interrupted: bool, at: str) -> Record:
    why = "the run was interrupted before the test ended" if interrupted else "its process died, or never ran it"
    return Record(
        id=test,
        suite=suite_of(test),
        sentence="",
        verdict=Verdict.INFRA,
        started=at,
        reason=f"lost: the test was selected but left no record; {why}",
    )
