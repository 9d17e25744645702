"""Rule `no-overlap`: quota that was handed over is not run on twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from raykueue.audit.books.changes import Change, HoldChange, ObjectChange
from raykueue.audit.books.fold import Books
from raykueue.audit.cohorts import NodeId
from raykueue.audit.handovers import HandOver
from raykueue.audit.rules.handing import Handing, Overlap, bound_seconds, running_seconds
from raykueue.audit.rules.rule import Rule, finding_id, lasting
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Moment
from raykueue.model.findings import Class, Finding, Ref
from raykueue.model.quantities import describe_all

SURVIVORS = "no-survivors"
UNKNOWN = "handed-over"
"""Of a finding that no survivors' finding tells the cause of."""


class NoOverlap(Rule):
    """Per hand-over. Its cause is that of the survivors' finding of the donor whose pods lasted longest.

    Only over-use counts: an heir that fits beside what is left of the donors' pods overlaps with nobody. Retries, and
    holds that fitted beside all survivors when they began, are no hand-overs.
    """

    name: ClassVar[str] = "no-overlap"
    sentence: ClassVar[str] = "quota that was handed over is not run on twice"
    klass: ClassVar[Class] = "hazard"
    why: ClassVar[str] = "two jobs run on what was bought for one: nodes are too small for both, or somebody pays twice"
    source: ClassVar[str] = "kueue keps/83-workload-preemption/README.md:71-75, :156@v0.19.2 (nobody promised)"
    sees: ClassVar[frozenset[type | str] | None] = frozenset({HoldChange, ObjectChange})

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._all: list[Handing] = []
        self._active: dict[NodeId, list[Handing]] = defaultdict(list)

    def see(self, change: Change) -> None:
        match change:
            case HoldChange(before=None) if not change.hold.before_journal:
                self._begin(change)
            case ObjectChange():  # the last change of every event
                self._settle(change.moment)

    def findings(self) -> Iterator[Finding]:
        for handing in self._all:
            for overlap in handing.overlaps:
                yield self._finding(handing, overlap)

    def review(self, found: list[Finding]) -> list[Finding]:
        unpaid: dict[str, list[Finding]] = defaultdict(list)
        for one in found:
            if one.rule == SURVIVORS:
                unpaid[one.payer or one.objects[0].uid].append(one)
        handings = {self._id(h, overlap): h for h in self._all for overlap in h.overlaps}
        return [_explained(one, handings[one.id], unpaid) if one.rule == self.name else one for one in found]

    def handovers(self, scope: Scope) -> list[HandOver]:
        """Those of the scope's heirs, oldest first."""
        mine = (h for h in self._all if scope.owns(h.job.namespace, h.cluster_queue))
        return [handing.told(self.now) for handing in mine]

    def forget(self, scope: Scope) -> None:
        self._all = [h for h in self._all if not scope.owns(h.job.namespace, h.cluster_queue)]
        kept = set(map(id, self._all))
        self._index(h for handings in self._active.values() for h in handings if id(h) in kept)

    def _begin(self, change: HoldChange) -> None:
        hold = change.hold
        job = self.books.job(hold.job)
        handing = Handing.of(hold, job.ref if job else hold.ref, self.books.usage)
        if handing is not None:
            self._all.append(handing)
            self._index([handing, *(h for handings in self._active.values() for h in handings)])

    def _settle(self, moment: Moment) -> None:
        usage = self.books.usage
        if not self._active or not (usage.touched or usage.edited):
            return
        if usage.edited:
            self._index([h for handings in self._active.values() for h in handings])
            roots = list(self._active)
        else:
            roots = list({root for name in usage.touched if (root := usage.root(name)) is not None})
        for root in roots:
            if root not in self._active:
                continue
            for handing in self._active[root]:
                handing.settle(usage, moment)
            self._active[root] = [h for h in self._active[root] if not h.over]
            if not self._active[root]:
                del self._active[root]

    def _index(self, handings: Iterable[Handing]) -> None:
        active = list(handings)
        self._active.clear()
        for handing in active:
            root = self.books.usage.root(handing.cluster_queue)
            if root is not None:
                self._active[root].append(handing)

    def _finding(self, handing: Handing, overlap: Overlap) -> Finding:
        window, giver = overlap.window, handing.last
        seconds = window.seconds(self.now)
        released = giver.hold.end or giver.hold.begin
        gap = max(0.0, handing.heir.begin - released)
        more = f" (and {len(handing.givers) - 1} more)" if len(handing.givers) > 1 else ""
        bound, running = bound_seconds(overlap, self.now), running_seconds(overlap, self.now)
        both = f"; both had pods on nodes {lasting(bound, still=False)}" if bound else "; never both on nodes"
        both += f", running {lasting(running, still=False)}" if running else ""
        text = (
            f"{handing.job} was given quota of {giver.job.ref}{more} {round(gap)} ms after its release, and used "
            f"{describe_all(window.peak)} of it at once with pods that still lived "
            f"{lasting(seconds, still=window.end is None)}{both}"
        )
        return Finding(
            id=self._id(handing, overlap),
            rule=self.name,
            klass=self.klass,
            cause=UNKNOWN,
            text=text,
            objects=_distinct(giver.job.ref, giver.hold.ref, handing.job, handing.heir.ref),
            begin=window.begin,
            end=window.end,
            namespace=giver.job.ref.namespace,
            cluster_queue=handing.cluster_queue,
            payer=giver.payer,
            peak=window.peak,
            resource_seconds=window.resource_seconds(self.now),
            seconds=(seconds, seconds),
        )

    def _id(self, handing: Handing, overlap: Overlap) -> str:
        return finding_id(self.name, handing.heir.payer, overlap.window.begin.rev)


def _explained(finding: Finding, handing: Handing, unpaid: Mapping[str, list[Finding]]) -> Finding:
    """With the cause of the survivors that lasted longest; part of them if even that they lived breaks a promise."""
    meanwhile = [f for giver in handing.givers for f in unpaid.get(giver.key, ()) if _overlap(f, finding)]
    if not meanwhile:
        return finding
    longest = max(meanwhile, key=lambda f: (f.end is None, f.end.rev if f.end else 0, f.id))
    return replace(
        finding,
        cause=longest.cause,
        payer=longest.payer,
        objects=_distinct(longest.objects[0], *finding.objects),
        part_of=longest.id if longest.klass == "contract" else "",
    )


def _overlap(one: Finding, other: Finding) -> bool:
    return (other.end is None or one.begin <= other.end) and (one.end is None or other.begin <= one.end)


def _distinct(*refs: Ref) -> tuple[Ref, ...]:
    return tuple({ref.uid: ref for ref in refs}.values())
