"""From records to one exit code. Pure.

Order of precedence, the first that applies:

    1  a test failed, or a recorded defect no longer shows
    2  the run was interrupted
    3  something could not be found out: a record is infra, or the run has a problem
    5  nothing ran: no record, or all were skipped or not applicable
    0  everything that ran passed, or showed a recorded defect

Why a product failure wins over an interruption and over infrastructure: it is proven, and no repetition makes the
pair good again. Why an interruption wins over infrastructure: the tests that it cut off are lost because of it, and
the cure is to run again, not to look for a broken machine. Nothing but 0 is green.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from raykueue.errors import EXIT_EMPTY, EXIT_FAILED, EXIT_INFRA, EXIT_INTERRUPTED, EXIT_OK
from raykueue.model.findings import Verdict
from raykueue.report.record import Record

NOT_RUN = frozenset({Verdict.SKIPPED, Verdict.NOT_APPLICABLE})
"""Verdicts of tests whose body never started."""

DEFECTS = frozenset({Verdict.FAIL, Verdict.FIXED})
"""Verdicts that make a run fail."""


def exit_code(records: Iterable[Record], problems: Sequence[str] = (), *, interrupted: bool = False) -> int:
    """The exit code of a run.

    Args:
        records: everything the run recorded.
        problems: sentences about what went wrong outside any test (a finished report has them as records already).
        interrupted: somebody stopped the run before all tests had ended.
    """
    every = list(records)
    seen = {record.verdict for record in every}
    if seen & DEFECTS:
        return EXIT_FAILED
    if interrupted:
        return EXIT_INTERRUPTED
    if problems or Verdict.INFRA in seen:
        return EXIT_INFRA
    if not any(record.verdict not in NOT_RUN and not record.of_run for record in every):
        return EXIT_EMPTY
    return EXIT_OK


def counts(records: Iterable[Record]) -> dict[Verdict, int]:
    """How many records have each verdict; every verdict is a key."""
    found = Counter(record.verdict for record in records)
    return {verdict: found[verdict] for verdict in Verdict}


def message(record: Record) -> str:
    """The reason with its verdict in front, as JUnit and Allure show it: `known: KR-12 …`, `not-applicable: …`.

    The Allure categories and readers of JUnit tell verdicts apart by this prefix, so whoever raises, skips or
    xfails on behalf of a record uses this text.
    """
    reason = record.reason or record.failure.strip().partition("\n")[0] or "(no reason was given)"
    return f"{record.verdict.value}: {' '.join(reason.split())}"
