"""The gate's answer as a value: open or closed, why, and what changed."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

from raykueue.audit.explanations import Allowance, KnownIssue
from raykueue.errors import EXIT_EMPTY, EXIT_FAILED, EXIT_INFRA, EXIT_OK, EXIT_USAGE
from raykueue.model.versions import Pair
from raykueue.report.gate.baseline import Beside, beside, comparable, line_up
from raykueue.report.gate.belonging import Suite, of_this_suite, that_fit
from raykueue.report.gate.changes import Change, changes, uncovered
from raykueue.report.gate.evidence import Evidence, Refusal
from raykueue.report.gate.judging import (
    Judged,
    Objection,
    exit_code,
    objections,
    of_refusals,
    of_reviews,
    together,
)
from raykueue.report.gate.required import Gate

WORDS = {
    EXIT_OK: "OPEN",
    EXIT_FAILED: "CLOSED",
    EXIT_INFRA: "CLOSED, not judged",
    EXIT_USAGE: "CLOSED, not understood",
    EXIT_EMPTY: "CLOSED, empty",
}
"""The gate's answer, by exit code."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a gate is asked, apart from the reports."""

    gate: Gate
    suite: Suite
    issues: tuple[KnownIssue, ...]
    allowances: tuple[Allowance, ...]
    now: datetime.datetime
    named: tuple[Pair, ...] = ()

    @property
    def today(self) -> datetime.date:
        """In UTC."""
        return self.now.astimezone(datetime.UTC).date()


@dataclass(frozen=True, slots=True)
class Decision:
    """What a gate answers."""

    gate: str
    cells: tuple[Judged, ...]
    objections: tuple[Objection, ...]
    changes: tuple[Change, ...]
    baseline: Evidence | None
    beside: tuple[Beside, ...] = ()
    """What the baseline has, and is compared with nothing."""
    waived: tuple[Refusal, ...] = ()
    """Why some of the reports would not count, had nobody said that they should."""

    @property
    def exit_code(self) -> int:
        """0 open; else why not: 1 failed, 3 not found out, 4 not understood, 5 nothing ran."""
        return exit_code(self.objections)


def decide(question: Question, evidence: Evidence, baseline: Evidence | None = None) -> Decision:
    """Answers.

    Raises:
        UsageError: the gate and the named pairs do not fit.
    """
    required = question.gate.cells(question.suite.versions, question.named)
    believed = that_fit(of_this_suite(evidence, question.suite, question.now))
    cells = together(believed.cells(), required)
    against = [*of_refusals(believed.refusals), *of_reviews(question.issues, question.today)]
    if not believed.reports:
        number = sum(len(judged.required) for judged in cells)
        what = f"no report that counts is there: {number} required tests have not run"
        against.append(Objection(EXIT_EMPTY, "empty", f"gate {question.gate.name}", what))
    else:
        for judged in cells:
            against += objections(judged, question.issues, question.allowances)
    found: Sequence[Change] = ()
    rest: Sequence[Beside] = ()
    if baseline is not None:
        baseline = that_fit(baseline)
        before = baseline.cells()
        lined_up = line_up(before, [judged.cell for judged in cells])
        baseline = replace(baseline, refusals=(*baseline.refusals, *comparable(baseline, believed, lined_up)))
        against += of_refusals(baseline.refusals, "baseline ")
        if not baseline.refusals:
            found = changes(before, cells, lined_up)
            rest = list(beside(before, lined_up, question.suite.versions))
        against += uncovered(found, question.gate.retired, question.today)
    return Decision(question.gate.name, cells, tuple(against), tuple(found), baseline, tuple(rest), believed.waived)
