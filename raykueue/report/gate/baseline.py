"""Which reports of a baseline are compared with what, and which with nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from raykueue.errors import EXIT_USAGE
from raykueue.model.versions import Versions
from raykueue.report.gate.evidence import Evidence, Refusal, ran, same
from raykueue.report.gate.required import Cell
from raykueue.report.run_info import LoadedReport, moment


@dataclass(frozen=True, slots=True)
class Beside:
    """A cell of the baseline that nothing is compared with. It closes no gate, so it is told."""

    cell: Cell
    why: str
    tests: int

    def __str__(self) -> str:
        return f"{self.cell}: {self.tests} tests were there"


def line_up(baseline: Mapping[Cell, Sequence[LoadedReport]], now: Iterable[Cell]) -> dict[Cell, Cell]:
    """Cells that are there or required now → what each is compared with: itself, or itself on another Kubernetes.

    A new Kubernetes is no new beginning: what ran on the one before must run on it, too.
    """
    cells = list(now)
    lined_up = {cell: cell for cell in cells if cell in baseline}
    for cell in cells:
        others = [one for one in baseline if _alike(one, cell) and one not in lined_up]
        if cell not in lined_up and others:
            lined_up[cell] = max(others, key=lambda one: max(report.run.started for report in baseline[one]))
    return lined_up


def beside(
    baseline: Mapping[Cell, Sequence[LoadedReport]], lined_up: Mapping[Cell, Cell], versions: Versions
) -> Iterator[Beside]:
    """What the baseline has beyond what a gate requires and its reports have."""
    served = {(pair.kueue, pair.kuberay) for pair in versions.pairs}
    for cell in sorted(baseline.keys() - set(lined_up.values()), reverse=True):
        compared = next((other for other in lined_up.values() if _alike(other, cell)), None)
        if compared is not None:
            why = f"what ran on Kubernetes {compared.kubernetes} is compared instead"
        elif (cell.kueue, cell.kuberay) in served:
            why = "this gate does not require it"
        else:
            why = "dropped: versions.toml does not have the pair any more"
        yield Beside(cell, why, sum(len(ran(report.records)) for report in baseline[cell]))


def comparable(baseline: Evidence, now: Evidence, lined_up: Mapping[Cell, Cell]) -> list[Refusal]:
    """Why it can't be one: it is among the reports themselves, newer than they are, or of another profile or tier."""
    refusals = [
        Refusal(EXIT_USAGE, str(report.folder), "it is one of the reports themselves")
        for report in baseline.reports
        if any(same(report, other) for other in now.reports)
    ]
    refusals += _newer(baseline, now)
    current, before = now.cells(), baseline.cells()
    for cell, other in lined_up.items():
        for what in ("profile", "tier"):
            then, today = (
                {getattr(one.run.facts, what) for one in many} for many in (before[other], current.get(cell, ()))
            )
            if today and then != today:
                why = f"on {other} its {what} is {', '.join(sorted(then))}, now it is {', '.join(sorted(today))}"
                refusals.append(Refusal(EXIT_USAGE, str(before[other][0].folder), why))
    return refusals


def _newer(baseline: Evidence, now: Evidence) -> Iterator[Refusal]:
    if not now.reports:
        return
    first = min((report.run for report in now.reports), key=lambda run: moment(run.started))
    for report in baseline.reports:
        if moment(report.run.started) > moment(first.started):
            why = f"it is newer ({report.run.started}) than what is compared with it ({first.started})"
            yield Refusal(EXIT_USAGE, str(report.folder), why)


def _alike(one: Cell, other: Cell) -> bool:
    return (one.kueue, one.kuberay, one.backend) == (other.kueue, other.kuberay, other.backend)
