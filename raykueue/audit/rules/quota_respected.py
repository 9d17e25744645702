"""Rule `quota-respected`, contract part (5a): nobody gains quota that is not available."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from raykueue.audit.books.changes import Change, CohortChange, HoldChange, QueueChange
from raykueue.audit.books.charged import ChargedUse, Use
from raykueue.audit.books.entities import Hold
from raykueue.audit.books.fold import Books
from raykueue.audit.cohorts import CLUSTER_QUEUE, COHORT, CohortCycle, NodeId, QuotaTree
from raykueue.audit.rules.rule import Rule, finding_id, lasting
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds, ns
from raykueue.audit.windows import Window
from raykueue.model.events import Moment
from raykueue.model.findings import Class, Finding, Ref
from raykueue.model.quantities import describe, describe_all
from raykueue.model.queues import FlavorResource, QuotaSpec


@dataclass(slots=True, eq=False)
class _Over:
    """One hold that began, or grew, beyond what was available."""

    hold: Hold
    queue: Ref
    window: Window
    over: dict[FlavorResource, int]
    available: dict[FlavorResource, int]
    nodes: dict[NodeId, int]


class QuotaRespected(Rule):
    """At each revision where a hold begins or grows. Lowering a quota evicts nobody, so it is not looked at then."""

    name: ClassVar[str] = "quota-respected"
    sentence: ClassVar[str] = "nothing is admitted beyond the quota"
    klass: ClassVar[Class] = "contract"
    why: ClassVar[str] = "quota is what a team was promised, and what the nodes were bought for"
    source: ClassVar[str] = (
        "kueue apis/kueue/v1beta2/clusterqueue_types.go:305-341, "
        "pkg/cache/scheduler/clusterqueue_snapshot.go:138-172@v0.19.2"
    )
    thresholds: ClassVar[tuple[str, ...]] = ("quota_memory",)
    sees: ClassVar[frozenset[type | str] | None] = frozenset({QueueChange, CohortChange, HoldChange})

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._tree = QuotaTree()
        self._charged = ChargedUse()
        self._edits: deque[tuple[int, NodeId, QuotaSpec | None]] = deque()
        self._found: list[_Over] = []
        self._open: list[_Over] = []

    def see(self, change: Change) -> None:
        match change:
            case QueueChange():
                before = change.before.spec if change.before else None
                after = change.after.spec if change.after else None
                self._edit((CLUSTER_QUEUE, change.name), before, after, change.moment)
            case CohortChange():
                self._edit((COHORT, change.name), change.before, change.after, change.moment)
            case HoldChange():
                self._use(change)

    def findings(self) -> Iterator[Finding]:
        for one in self._found:
            yield self._finding(one)

    def forget(self, scope: Scope) -> None:
        self._found = [o for o in self._found if not scope.owns(o.hold.ref.namespace, o.queue.name)]
        self._open = [o for o in self._open if o in self._found]

    def _edit(self, node: NodeId, before: QuotaSpec | None, after: QuotaSpec | None, moment: Moment) -> None:
        if before == after:
            return
        if before is not None:
            self._edits.append((moment.t, node, before))
        self._tree.define(node, after)
        self._recheck(moment)

    def _use(self, change: HoldChange) -> None:
        hold = change.hold
        freed, taken = self._charged.apply(change, self.books.job(hold.job))
        for place, value in freed.items():
            self._tree.add(*place, -value)
        if taken and not hold.before_journal:
            self._judge(hold, taken, change.moment)
        for place, value in taken.items():
            self._tree.add(*place, value)
        self._recheck(change.moment)

    def _judge(self, hold: Hold, growth: Use, moment: Moment) -> None:
        queue = self.books.queues.get(hold.charge.cluster_queue)
        if queue is None:
            return
        try:
            available = self._available(growth)
            lacking = {p: value - available[p] for p, value in growth.items() if value > available[p]}
            if lacking:
                generous = self._most_generous(lacking, moment)
                lacking = {p: growth[p] - generous[p] for p in lacking if growth[p] > generous[p]}
        except CohortCycle:
            return
        if lacking:
            over = {key: value for (_, key), value in lacking.items()}
            left = {key: available[name, key] for name, key in lacking}
            found = _Over(hold, queue.ref, Window(moment), over, left, {})
            self._found.append(found)
            self._open.append(found)

    def _available(self, places: Use) -> Use:
        return {(name, key): self._tree.available((CLUSTER_QUEUE, name), key) for name, key in places}

    def _most_generous(self, places: Use, moment: Moment) -> Use:
        """The most that was available by any spec of the last seconds: the scheduler decides on a snapshot."""
        while self._edits and self._edits[0][0] < moment.t - ns(self.limits.quota_memory):
            self._edits.popleft()
        best = self._available(places)
        undone: list[tuple[NodeId, QuotaSpec | None]] = []
        for _, node, before in reversed(self._edits):
            undone.append((node, self._tree.spec(node)))
            self._tree.define(node, before)
            for place, value in self._available(places).items():
                best[place] = max(best[place], value)
        for node, spec in reversed(undone):
            self._tree.define(node, spec)
        return best

    def _recheck(self, moment: Moment) -> None:
        """Moves the windows that are open: over is what is over now, at most what was admitted too much."""
        for one in list(self._open):
            level: dict[str, int] = {}
            for key, over in one.over.items():
                level[key[1]] = level.get(key[1], 0) + min(over, self._over(one.queue.name, key))
            if any(level.values()):
                one.window.set(moment, level)
                one.nodes = one.nodes or self._located(one)
            else:
                one.window.close(moment)
                self._open.remove(one)

    def _over(self, name: str, key: FlavorResource) -> int:
        try:
            return max(0, -self._tree.available((CLUSTER_QUEUE, name), key))
        except CohortCycle:
            return 0

    def _located(self, one: _Over) -> dict[NodeId, int]:
        found: dict[NodeId, int] = {}
        for key in one.over:
            found |= self._tree.over_use(one.queue.name, key)
        return found

    def _finding(self, one: _Over) -> Finding:
        window, hold = one.window, one.hold
        seconds = window.seconds(self.now)
        had = ", ".join(
            f"{describe(r, max(0, value))} of {flavor}" for (flavor, r), value in sorted(one.available.items())
        )
        where = ", ".join(
            f"{kind} {name}" for kind, name in one.nodes if (kind, name) != (CLUSTER_QUEUE, one.queue.name)
        )
        text = (
            f"{hold} gained {describe_all(window.peak)} more than {one.queue} had available ({had} left), over quota "
            f"{lasting(seconds, still=window.end is None)}" + (f"; over by that: {where}" if where else "")
        )
        return Finding(
            id=finding_id(self.name, hold.payer, window.begin.rev),
            rule=self.name,
            klass="contract",
            cause="over-admitted",
            text=text,
            objects=(hold.ref, one.queue),
            begin=window.begin,
            end=window.end,
            namespace=hold.ref.namespace,
            cluster_queue=one.queue.name,
            payer=hold.payer,
            peak=window.peak,
            resource_seconds=window.resource_seconds(self.now),
            seconds=(seconds, seconds),
        )
