"""What several wrong lines of one ClusterQueue come to: one finding per fault, not one per line.

A fault usually shows in usage and reservation, in every resource and in the number of Workloads at once. Lines that are
too high in overlapping time are one finding, lines that are too low another. A wrong count or a wrong `borrowed`
belongs to such a finding if there is one at the time, else it is a finding of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from raykueue.audit.bands import VALUE, Run
from raykueue.audit.rules.rule import finding_id, lasting
from raykueue.model.findings import Finding, Ref
from raykueue.model.quantities import describe, describe_all

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """One number in a ClusterQueue's status. Without flavor and resource: the number of Workloads."""

    measure: str
    flavor: str = ""
    resource: str = ""
    borrowed: bool = False

    def __str__(self) -> str:
        if not self.resource:
            return "reservingWorkloads" if self.measure == "reservation" else "admittedWorkloads"
        return f"{'borrowed ' if self.borrowed else ''}{self.measure} of {self.flavor}"

    def tell(self, value: int) -> str:
        return describe(self.resource or "Workloads", value)


@dataclass(slots=True)
class _Fault:
    cause: str
    runs: list[tuple[Line, Run]]

    def overlaps(self, run: Run) -> bool:
        return any(_starts_before_end(run, other) and _starts_before_end(other, run) for _, other in self.runs)


def findings_of(queue: Ref, runs: Sequence[tuple[Line, Run]], now: int, rule: str) -> Iterator[Finding]:
    """One finding per fault, from all the runs of a queue that lasted too long."""
    for fault in _faults(runs):
        yield _finding(queue, fault, now, rule)


def _faults(runs: Sequence[tuple[Line, Run]]) -> list[_Fault]:
    faults: list[_Fault] = []
    ordered = sorted(runs, key=lambda one: (_kind(one[0]), one[1].window.begin.t, one[1].window.begin.rev, one[0]))
    for line, run in ordered:
        kind = _kind(line)
        cause = f"{run.side}-booked" if kind == 0 else ("borrowed", "miscounted")[kind - 1]
        same = [f for f in faults if (kind > 0 or f.cause == cause) and f.overlaps(run)]
        if same:
            same[0].runs.append((line, run))
        else:
            faults.append(_Fault(cause, [(line, run)]))
    return faults


def _kind(line: Line) -> int:
    """0 an amount, 1 borrowed, 2 a count."""
    return 2 if not line.resource else int(line.borrowed)


def _starts_before_end(one: Run, other: Run) -> bool:
    return other.window.end is None or one.window.begin.t <= other.window.end.t


def _finding(queue: Ref, fault: _Fault, now: int, rule: str) -> Finding:
    windows = [run.window for _, run in fault.runs]
    begin = min((w.begin for w in windows), key=lambda m: (m.t, m.rev))
    ends = [w.end for w in windows if w.end is not None]
    end = max(ends, key=lambda m: (m.t, m.rev)) if len(ends) == len(windows) else None
    seconds = ((end.t if end else max(now, begin.t)) - begin.t) / 1e9
    kind = _kind(fault.runs[0][0])
    own = [(line, run) for line, run in fault.runs if _kind(line) == kind]
    peak = _combine([(line, run.window.peak.get(VALUE, 0)) for line, run in own])
    spent = _combine([(line, run.window.resource_seconds(now).get(VALUE, 0.0)) for line, run in own])
    told = "; ".join(
        f"{line} says {line.tell(run.published)}, should be {line.tell(run.truth)}" for line, run in _in_order(fault)
    )
    verb = {"over-booked": "books too much", "under-booked": "books too little"}.get(fault.cause, "is wrong")
    return Finding(
        id=finding_id(rule, f"{queue.name} {fault.cause}", begin.rev),
        rule=rule,
        klass="contract",
        cause=fault.cause,
        text=f"{queue} {verb} by {describe_all(peak)} {lasting(seconds, still=end is None)}: {told}",
        objects=(queue,),
        begin=begin,
        end=end,
        cluster_queue=queue.name,
        peak=peak,
        resource_seconds=spent,
        seconds=(seconds, seconds),
    )


def _in_order(fault: _Fault) -> list[tuple[Line, Run]]:
    """Amounts first, then what follows from them."""
    return sorted(fault.runs, key=lambda one: (_kind(one[0]), one[0]))


def _combine(lines: list[tuple[Line, N]]) -> dict[str, N]:
    """Per resource: flavors add up, usage and reservation are two views of the same thing."""
    sums: dict[tuple[str, str], N] = {}
    for line, value in lines:
        key = (line.resource or "Workloads", line.measure)
        sums[key] = sums[key] + value if key in sums else value
    result: dict[str, N] = {}
    for (resource, _), value in sums.items():
        result[resource] = max(result.get(resource, value), value)
    return result
