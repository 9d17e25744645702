"""What each deletion policy costs: who is unpaid for how long, and how long the next in the queue waits for room. Pure.

Read from the records of `suites/deletion_policy/test_next_job.py`: its findings about the job that ended, its
hand-overs, and the one moment that it measures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from raykueue.model.findings import Verdict
from raykueue.report.record import Record

MEASURED = "scheduled after admitted"
"""The name of the moment: from the next job's admission until its last head or worker pod has a node."""
_SUITE = "suites/deletion_policy/test_next_job.py::"
_ROW = re.compile(r"\[(?P<row>[^\]]+)\]$")
_JUDGED = (Verdict.PASS, Verdict.KNOWN)
_HEAD = "| after the job's end | unpaid for | unpaid | twice on the quota for | next job scheduled after |\n"
_RULE = "|---|--:|--:|--:|--:|\n"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one row of the table, in one run."""

    row: str
    survivor_seconds: float
    """The longest that pods of the job outlived its quota."""
    unpaid: Mapping[str, float] = field(default_factory=dict)
    """Resource-seconds: of cpu millicore-seconds, of memory byte-seconds."""
    overlap_seconds: float = 0.0
    """The longest that old and new pods used more than the quota together."""
    scheduled_ms: float | None = None
    """None: never, while it was watched."""
    known: str = ""
    """The known issue that it shows."""

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, rounded to what is worth keeping."""
        return {
            "row": self.row,
            "survivor_seconds": round(self.survivor_seconds, 2),
            "unpaid": {name: round(value) for name, value in sorted(self.unpaid.items())},
            "overlap_seconds": round(self.overlap_seconds, 2),
            "scheduled_ms": None if self.scheduled_ms is None else round(self.scheduled_ms),
            "known": self.known,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Cost:
        """The inverse."""
        return cls(**body)


def costs(records: Iterable[Record]) -> list[Cost]:
    """Of every row that was judged, in order of the rows' ids."""
    found = []
    for record in records:
        named = _ROW.search(record.id)
        if record.id.startswith(_SUITE) and named and record.verdict in _JUDGED:
            found.append(_cost(named["row"], record))
    return sorted(found, key=lambda cost: cost.row)


def table(rows: Iterable[Cost]) -> str:
    """As Markdown; empty if there is nothing to tell."""
    lines = [_line(row) for row in rows]
    return "".join([_HEAD, _RULE, *lines]) if lines else ""


def _cost(row: str, record: Record) -> Cost:
    # Those that the test's own clean-up causes are not about the policy.
    survivors = [
        one.finding
        for one in record.findings
        if one.finding.rule == "no-survivors" and one.finding.cause.startswith("finished/")
    ]
    unpaid: dict[str, float] = {}
    for finding in survivors:
        for resource, value in finding.resource_seconds.items():
            unpaid[resource] = unpaid.get(resource, 0.0) + value
    known = {
        one.explained_by.removeprefix("known:") for one in record.findings if one.explained_by.startswith("known:")
    }
    return Cost(
        row,
        max((finding.seconds[1] for finding in survivors), default=0.0),
        unpaid,
        max((one.overlap_ms / 1000 for one in record.handovers), default=0.0),
        record.moments.get(MEASURED),
        ", ".join(sorted(known)),
    )


def _line(cost: Cost) -> str:
    seconds = f"{cost.survivor_seconds:.1f} s"
    if cost.known:
        seconds += " until it was deleted by hand"
    waited = "never" if cost.scheduled_ms is None else f"{cost.scheduled_ms:.0f} ms"
    known = f" (known: {cost.known})" if cost.known else ""
    return f"| {cost.row}{known} | {seconds} | {_amounts(cost.unpaid)} | {cost.overlap_seconds:.1f} s | {waited} |\n"


def _amounts(unpaid: Mapping[str, float]) -> str:
    told = []
    if "cpu" in unpaid:
        told.append(f"{unpaid['cpu'] / 1000:.1f} core-s")
    if "memory" in unpaid:
        told.append(f"{unpaid['memory'] / 2**30:.1f} GiB-s")
    told += [f"{value:.1f} {name}-s" for name, value in sorted(unpaid.items()) if name not in ("cpu", "memory")]
    return ", ".join(told) or "nothing"
