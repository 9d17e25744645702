"""A journal as a script that can be changed: what happens when, and where in it a fault can be planted.

Lines are in order of the fold; when a script becomes a journal again, revisions are counted anew along it, so lines may
be moved, added and dropped freely.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from raykueue.audit.books.changes import HoldChange, PodChange
from raykueue.audit.books.entities import Hold
from raykueue.audit.levels import Levels
from raykueue.audit.replay import Step, steps
from raykueue.model import rayjobs, requests, views
from raykueue.model.events import Event, EventType, Header, Marker, Record

Json = dict[str, Any]
NS = 10**9
FIRST_REV = 1000
QUIET_S = 100.0
"""Time that passes after the last line: every rule has decided by then."""


@dataclass(frozen=True)
class Line:
    """One write, or one thing the suite did."""

    t: int
    item: Event | Marker

    @property
    def obj(self) -> Json:
        assert isinstance(self.item, Event)
        return dict(self.item.object)

    def like(self, kind: str, uid: str = "") -> bool:
        return isinstance(self.item, Event) and self.item.kind == kind and uid in ("", views.uid(self.item.object))


@dataclass(frozen=True, eq=False)
class Script:
    """What happens."""

    header: Header = field(repr=False)
    lines: tuple[Line, ...] = field(repr=False)
    finish: Callable[[list[Record]], list[Record]] = list
    """What the recorder makes of it: the last change to the journal."""

    @classmethod
    def of(cls, records: Iterable[Record]) -> Script:
        """Of a journal; events that were there before it stay so."""
        listed = list(records)
        assert isinstance(listed[0], Header)
        lines = tuple(Line(step.moment.t, _bare(step.item)) for step in steps(listed))
        return cls(listed[0], lines)

    def journal(self) -> list[Record]:
        """As a journal, in order of arrival, which is that of the fold."""
        records: list[Record] = [self.header]
        for rev, line in enumerate(self.lines, FIRST_REV):
            if isinstance(line.item, Marker):
                records.append(dataclasses.replace(line.item, arrived=line.t))
                continue
            obj = {**line.obj, "metadata": {**line.obj["metadata"], "resourceVersion": str(rev)}}
            records.append(dataclasses.replace(line.item, rev=rev, arrived=line.t, object=obj))
        return [*self.finish(records), Marker("the end", self.lines[-1].t + round(QUIET_S * NS))]

    def state(self, kind: str, uid: str, before: int) -> Json:
        """A copy of an object as it was before a line."""
        found = next(line for line in reversed(self.lines[:before]) if line.like(kind, uid))
        return copy.deepcopy(found.obj)

    def pause(self, index: int, seconds: float) -> Script:
        """Everything from that line on happens so much later."""
        late = round(seconds * NS)
        return self.with_lines(
            dataclasses.replace(line, t=line.t + late) if i >= index else line for i, line in enumerate(self.lines)
        )

    def insert(self, index: int, *lines: Line) -> Script:
        """These happen before that line."""
        return self.with_lines([*self.lines[:index], *lines, *self.lines[index:]])

    def meanwhile(self, index: int, seconds: float, kind: str, during: Json, after: Json | None = None) -> Script:
        """Right before that line, and for so long, an object is like this; then it is as before, or gone again.

        Everything else waits.
        """
        t = self.lines[index - 1].t
        end = t + round(seconds * NS)
        back = written(end, kind, during, "DELETED") if after is None else written(end, kind, after)
        first = written(t, kind, during, "ADDED" if after is None else "MODIFIED")
        return self.pause(index, seconds).insert(index, first, back)

    def move(self, chosen: Callable[[int, Line], bool], t: int) -> Script:
        """These lines happen at `t` instead, after whatever happens until then, in the same order."""
        kept = [line for i, line in enumerate(self.lines) if not chosen(i, line)]
        moved = [dataclasses.replace(line, t=t) for i, line in enumerate(self.lines) if chosen(i, line)]
        before = [line for line in kept if line.t <= t]
        return self.with_lines([*before, *moved, *kept[len(before) :]])

    def rewrite(self, chosen: Callable[[int, Line], bool], change: Callable[[Json], None]) -> Script:
        """The objects of these lines are changed, in place, on a copy."""

        def changed(line: Line) -> Line:
            obj = copy.deepcopy(line.obj)
            change(obj)
            assert isinstance(line.item, Event)
            return Line(line.t, dataclasses.replace(line.item, object=obj))

        return self.with_lines(changed(line) if chosen(i, line) else line for i, line in enumerate(self.lines))

    def with_lines(self, lines: Iterable[Line]) -> Script:
        return dataclasses.replace(self, lines=tuple(lines))


def written(t: int, kind: str, obj: Json, type_: EventType = "MODIFIED") -> Line:
    """A line that writes an object."""
    return Line(t, Event(kind, type_, 0, 0, obj))


@dataclass
class Span:
    """One hold of a RayJob: indexes of lines."""

    hold: Hold = field(repr=False)
    begin: int
    end: int | None = None
    calm: int | None = None
    """Before this line its job runs on all its pods, and all else is settled: time may pass."""
    pods: dict[str, str] = field(default_factory=dict)
    """UID to PodSet, of the pods that it pays for."""
    succeeded_by: bool = False
    """Quota was given to somebody within ten seconds after its end."""


@functools.lru_cache(maxsize=8)
def spans(script: Script) -> list[Span]:
    """Every hold of the script, in order."""
    found: dict[str, Span] = {}
    levels = Levels()
    for index, step in enumerate(steps(script.journal())):
        for change in step.changes:
            levels.see(change)
            if isinstance(change, HoldChange) and change.before is None:
                found[change.hold.payer] = Span(change.hold, index)
            elif isinstance(change, HoldChange) and change.after is None:
                found[change.hold.payer].end = index
            elif isinstance(change, PodChange) and change.before is None and change.pod.state.payer is not None:
                found[change.pod.state.payer.payer].pods[change.pod.ref.uid] = change.pod.pod_set
        if index + 1 < len(script.lines):
            for payer in levels.holds if _calm(step, levels) else ():
                found[payer].calm = index + 1
    ordered = list(found.values())
    for one in ordered:
        ends = None if one.end is None else script.lines[one.end].t
        begins = [script.lines[other.begin].t for other in ordered if other is not one]
        one.succeeded_by = ends is not None and any(0 <= t - ends < 10 * 10**9 for t in begins)
    return ordered


def _calm(step: Step, levels: Levels) -> bool:
    """Nothing is on its way, so nobody could say that it takes too long."""
    pods = levels.pods.values()
    if any(pod.state.payer is None or pod.state.payer.end is not None for pod in pods if pod.state.live):
        return False
    if any(requests.terminating(pod.object) for pod in pods):
        return False
    for key in levels.keys():  # noqa: SIM118 - it is no mapping
        level = levels.at(key)
        if not level.usage == level.reservation == level.charged:
            return False
    return all(_settled(job, step, levels) for job in step.books.jobs())


def _settled(job: Any, step: Step, levels: Levels) -> bool:
    obj = job.object
    if obj is None or job.ref.kind != "RayJob":
        return obj is None and not job.holds
    state = rayjobs.deployment_status(obj)
    if views.deleting(obj) or not step.books.workloads(job.ref.uid):
        return False
    if state in ("Complete", "Failed"):
        return not job.holds
    if not job.holds:
        return rayjobs.wants_suspension(obj) and state == "Suspended"
    wanted = sum(one.count for one in job.holds[-1].charge.pod_sets.values())
    live = sum(levels.pods[uid].state.live for uid in job.pods)
    return state == "Running" and not rayjobs.wants_suspension(obj) and live == wanted


def _bare(item: Event | Marker) -> Event | Marker:
    """Without what was known when it was recorded."""
    if isinstance(item, Marker):
        return dataclasses.replace(item, rev=0)
    return dataclasses.replace(item, t=None, place=0)


def indexes(script: Script, kind: str, uid: str = "") -> Iterator[int]:
    """Of all lines of a kind, or of one object."""
    return (i for i, line in enumerate(script.lines) if line.like(kind, uid))
