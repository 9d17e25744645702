"""A finding as a story: at each change around it, how much there was of everything, and what changed.

    ms  quota/booked/charged/demand
        CPU            GiB
>    0  3/2.5/0/2.5    8/6/0/6    Workload …-fec44: QuotaReserved False (Pending)

Booked is usage:reservation where the two differ; `?` is not known; `>` is inside of the finding's window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from raykueue.audit.books.changes import HoldChange, ObjectChange, PodChange, QueueChange
from raykueue.audit.levels import Level, Levels, booked
from raykueue.audit.replay import Step
from raykueue.audit.telling import short_name, what_changed
from raykueue.model import views
from raykueue.model.events import Marker, Moment
from raykueue.model.findings import Finding
from raykueue.model.quantities import CPU, in_units, unit

AROUND_NS = 2_000_000_000
"""Before the finding's begin and after its end."""
LINES = 12
_ROWS = 7
"""Leaves room for the head's two lines, and for one line in each of the three places where something is left out."""
_MOST_RESOURCES = 2
_OWNED = ("RayCluster", "Job")

_Levels: TypeAlias = tuple[Level, ...]


@dataclass(slots=True)
class _Row:
    moment: Moment
    levels: _Levels
    text: str


@dataclass(slots=True)
class _Story:
    """What is told of one finding, while steps go by."""

    finding: Finding
    resources: tuple[str, ...]
    related: set[str]
    rows: list[_Row] = field(default_factory=list)
    last: _Levels | None = None

    def look(self, step: Step, levels: Levels) -> None:
        finding = self.finding
        if step.moment.t < finding.begin.t - AROUND_NS:
            self._learn(step)
            return
        if finding.end is not None and step.moment.t > finding.end.t + AROUND_NS:
            return
        queue = finding.cluster_queue or self._asked_for(levels)
        now = tuple(levels.total(queue, resource) for resource in self.resources)
        concerned = self._learn(step) or _in_queue(step, queue, levels)
        text = _text(step, queue)
        moved = now != self.last and (self.last is not None or _in_queue(step, queue, levels))
        self.last = now
        if moved or (concerned and text):
            self.rows.append(_Row(step.moment, now, text))

    def lines(self, width: int) -> tuple[str, ...]:
        begin, end = self.finding.begin, self.finding.end
        shown = _chosen([row.moment for row in self.rows], begin, end)
        cells = [[_cell(r, level) for r, level in zip(self.resources, row.levels, strict=True)] for row in self.rows]
        widths = [
            max([len(unit(r)), *(len(cells[i][column]) for i in shown)]) for column, r in enumerate(self.resources)
        ]
        body: list[str] = []
        last = -1
        for index in shown:
            body += _left_out(index - last - 1)
            row = self.rows[index]
            mark = ">" if begin.t <= row.moment.t and (end is None or row.moment.t <= end.t) else " "
            numbers = "".join(f"{cell.ljust(size)}  " for cell, size in zip(cells[index], widths, strict=True))
            body.append(f"{mark}{row.moment - begin:8.0f}  {numbers}{row.text}")
            last = index
        body += _left_out(len(self.rows) - last - 1)
        head = ["       ms" + ("  quota/booked/charged/demand" if self.resources else "")]
        if self.resources:
            units = zip(self.resources, widths, strict=True)
            head.append(" " * 11 + "  ".join(unit(r).ljust(size) for r, size in units))
        return tuple(_cut(line.rstrip(), width) for line in [*head, *body])

    def _learn(self, step: Step) -> bool:
        """Whether it is about an object of the finding, or one that such an object owns."""
        if isinstance(step.item, Marker):
            return step.item.what.endswith(("-down", "-up"))
        obj = step.item.object
        owner = views.controller(obj)
        if step.item.kind in _OWNED and owner is not None and owner.uid in self.related:
            self.related.add(views.uid(obj))
        return views.uid(obj) in self.related

    def _asked_for(self, levels: Levels) -> str:
        """The ClusterQueue that its pods use, of a finding that nobody pays for."""
        queues = {levels.queue_of(pod) for uid, pod in levels.pods.items() if uid in self.related}
        return max(queues, default="")


def timelines(findings: Iterable[Finding], steps: Iterable[Step], width: int = 100) -> dict[str, tuple[str, ...]]:
    """By finding id: at most LINES lines, none wider than `width`; empty if nothing happened around it.

    Args:
        steps: of the journal that the findings come from (`raykueue.audit.replay.steps`).
    """
    stories = [_Story(one, _resources(one.peak), {ref.uid for ref in one.objects}) for one in findings]
    levels = Levels()
    for step in steps:
        for change in step.changes:
            levels.see(change)
        for story in stories:
            story.look(step, levels)
    return {story.finding.id: story.lines(width) if story.rows else () for story in stories}


def _resources(peak: Mapping[str, int]) -> tuple[str, ...]:
    order = {CPU: 0, "memory": 1}
    ordered = sorted((r for r, value in peak.items() if value), key=lambda r: (order.get(r, 2), r))
    return tuple(ordered[:_MOST_RESOURCES])


def _in_queue(step: Step, queue: str, levels: Levels) -> bool:
    for change in step.changes:
        match change:
            case QueueChange(name=name):
                concerned = name == queue
            case HoldChange(before=before, after=after):
                concerned = queue in (c.cluster_queue for c in (before, after) if c)
            case PodChange(pod=pod):
                concerned = levels.queue_of(pod) == queue
            case _:
                concerned = False
        if concerned:
            return True
    return False


def _text(step: Step, queue: str) -> str:
    if isinstance(step.item, Marker):
        return step.item.what
    pod_sets = {change.pod.ref.uid: change.pod.pod_set for change in step.changes if isinstance(change, PodChange)}
    for change in step.changes:
        if isinstance(change, ObjectChange) and (what := what_changed(change)):
            kind, name = change.ref.kind, short_name(change.ref.name)
            if kind == "Pod":
                kind = f"{pod_sets.get(change.ref.uid, '')} pod".strip()
            return f"{kind}: {what}" if (kind, change.ref.name) == ("ClusterQueue", queue) else f"{kind} {name}: {what}"
    return ""


def _chosen(moments: Sequence[Moment], begin: Moment, end: Moment | None) -> list[int]:
    """Indexes of the rows to show: those next to the begin and the end."""
    first = next((i for i, m in enumerate(moments) if m.t >= begin.t), len(moments) - 1)
    last = next((i for i, m in enumerate(moments) if end is not None and m.t >= end.t), len(moments) - 1)
    if len(moments) <= LINES - 2:
        return list(range(len(moments)))
    near = sorted(range(len(moments)), key=lambda i: (min(abs(i - first), abs(i - last)), i))
    return sorted(near[:_ROWS])


def _left_out(count: int) -> Iterator[str]:
    if count:
        yield f"           … {count} change{'s' if count > 1 else ''} left out"


def _cell(resource: str, level: Level) -> str:
    numbers = [in_units(resource, v) for v in (level.nominal, level.charged, level.demand)]
    return "/".join([numbers[0], booked(resource, level), *numbers[1:]])


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"
