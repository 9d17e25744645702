"""Rule `quota-respected`, physical part (5b): use beyond the quota is explained by other findings, or by an edit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from raykueue.audit.books.changes import Change, CohortChange, HoldChange, ObjectChange, QueueChange
from raykueue.audit.books.fold import Books
from raykueue.audit.cohorts import CLUSTER_QUEUE, COHORT, CohortCycle, NodeId
from raykueue.audit.rules.rule import Rule, finding_id, lasting
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.audit.windows import Window
from raykueue.model.events import Moment
from raykueue.model.findings import Class, Finding, Ref
from raykueue.model.quantities import describe_all, excess, largest
from raykueue.model.queues import FlavorResource

_UNPAID = frozenset({"pods-covered", "no-survivors"})
"""Rules that account for what nobody pays for."""
_SECOND = "no-overlap"
_ADMITTED, _EDITED, _BEFORE, _UNEXPLAINED = "over-admitted", "quota-edited", "before-journal", "unexplained"
_TELLS = {
    _ADMITTED: "so much was admitted",
    _EDITED: "its quota was edited while it was used",
    _BEFORE: "it was so when the recording began",
    _UNEXPLAINED: "no other finding explains it, so it is a new kind of defect, or one of this ledger",
}


@dataclass(slots=True, eq=False)
class _Over:
    """One time in which a node of the quota tree was over."""

    node: NodeId
    cluster_queue: str
    """Where something changed when it began."""
    window: Window
    levels: dict[FlavorResource, int] = field(default_factory=dict)

    def meets(self, finding: Finding) -> bool:
        """They have a moment in common."""
        begin, end = self.window.begin, self.window.end
        return (end is None or finding.begin <= end) and (finding.end is None or begin <= finding.end)


class _Overs:
    """All of one kind, open ones by node."""

    def __init__(self) -> None:
        self.found: list[_Over] = []
        self.open: dict[NodeId, _Over] = {}

    def set(self, node: NodeId, key: FlavorResource, value: int, queue: str, moment: Moment) -> None:
        """The node is over by that much from now on."""
        one = self.open.get(node)
        if one is None and value:
            one = self.open[node] = _Over(node, queue, Window(moment))
            self.found.append(one)
        if one is None or one.levels.get(key, 0) == value:
            return
        one.levels[key] = value
        level: dict[str, int] = {}
        for (_, resource), amount in one.levels.items():
            level[resource] = level.get(resource, 0) + amount
        if any(level.values()):
            one.window.set(moment, level)
        else:
            one.window.close(moment)
            del self.open[node]

    def forget(self, scope: Scope) -> None:
        self.found = [one for one in self.found if not scope.owns("", one.cluster_queue)]
        self.open = {node: one for node, one in self.open.items() if not scope.owns("", one.cluster_queue)}


class OverUse(Rule):
    """At each node of the quota tree, once: at its root, and where a limit of borrowing is exceeded.

    What is charged, and used, beyond the quota was admitted beyond it, or the quota was edited. The rest is used by
    pods that nobody pays for: the findings about these explain it, and say how much of it was `over_quota`.
    """

    name: ClassVar[str] = "quota-respected"
    sentence: ClassVar[str] = "use beyond the quota is explained"
    klass: ClassVar[Class] = "hazard"
    why: ClassVar[str] = "what is used beyond the quota is missing on the nodes, whoever pays for it"
    source: ClassVar[str] = "kueue keps/83-workload-preemption/README.md:156@v0.19.2 (nobody promised)"
    sees: ClassVar[frozenset[type | str] | None] = frozenset({QueueChange, CohortChange, HoldChange, ObjectChange})

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._paid = _Overs()
        self._unpaid = _Overs()
        self._nodes: dict[str, set[NodeId]] = defaultdict(set)
        """ClusterQueue to itself and all that was ever above it."""
        self._reasons: dict[NodeId, str] = {}

    def see(self, change: Change) -> None:
        match change:
            case QueueChange() if change.before is not None:
                self._reasons |= dict.fromkeys(self.books.usage.edited, _EDITED)
            case CohortChange():
                self._reasons |= dict.fromkeys(self.books.usage.edited, _EDITED)
            case HoldChange(before=None) if change.hold.before_journal:
                for node in self._above(change.hold.charge.cluster_queue):
                    self._reasons.setdefault(node, _BEFORE)
            case ObjectChange():  # the last change of every event
                self._settle(change.moment)

    def findings(self) -> Iterator[Finding]:
        return iter(())

    def review(self, found: list[Finding]) -> list[Finding]:
        mine = [self._of_paid(one, found) for one in self._paid.found]
        parts: dict[str, dict[NodeId, dict[str, int]]] = defaultdict(dict)
        for one in self._unpaid.found:
            near = [f for f in found if one.node in self._nodes.get(f.cluster_queue, ()) and one.meets(f)]
            explaining = [f for f in near if f.rule in _UNPAID and not f.part_of]
            left = one.window.peak
            for finding in explaining:
                left = excess(left, finding.peak)
            if left:
                mine.append(self._finding(one, _UNEXPLAINED, left))
            for finding in [*explaining, *(f for f in near if f.rule == _SECOND)]:
                over = {r: min(value, one.window.peak.get(r, 0)) for r, value in finding.peak.items()}
                parts[finding.id][one.node] = largest(parts[finding.id].get(one.node, {}), over)
        return [_told(finding, parts.get(finding.id, {})) for finding in found] + mine

    def forget(self, scope: Scope) -> None:
        self._paid.forget(scope)
        self._unpaid.forget(scope)
        for name in scope.cluster_queues:
            self._nodes.pop(name, None)
        mine = {(CLUSTER_QUEUE, name) for name in scope.cluster_queues} | {(COHORT, name) for name in scope.cohorts}
        self._reasons = {node: why for node, why in self._reasons.items() if node not in mine}

    def _settle(self, moment: Moment) -> None:
        usage = self.books.usage
        for name, keys in usage.touched.items():
            for node in self._above(name) if keys else ():
                self._judge(node, keys, name, moment)
        for node in sorted(usage.edited):
            name = node[1] if node[0] == CLUSTER_QUEUE else self._some_queue(node)
            self._judge(node, self._keys(node), name, moment)

    def _judge(self, node: NodeId, keys: Iterable[FlavorResource], name: str, moment: Moment) -> None:
        for key in keys:
            try:
                total = self.books.usage.demand.over(node, key)
                paid = self.books.usage.paid.over(node, key) if total else 0
            except CohortCycle:
                total = paid = 0
            self._paid.set(node, key, paid, name, moment)
            self._unpaid.set(node, key, total - paid, name, moment)

    def _above(self, name: str) -> list[NodeId]:
        try:
            path = self.books.usage.demand.path(name)
        except CohortCycle:
            path = [(CLUSTER_QUEUE, name)]
        self._nodes[name].update(path)
        return path

    def _keys(self, node: NodeId) -> set[FlavorResource]:
        """All that may be over there, or was."""
        keys = {key for overs in (self._paid, self._unpaid) if node in overs.open for key in overs.open[node].levels}
        try:
            return keys | set(self.books.usage.demand.keys(node))
        except CohortCycle:
            return keys

    def _some_queue(self, cohort: NodeId) -> str:
        return min((name for name, nodes in self._nodes.items() if cohort in nodes), default="")

    def _of_paid(self, one: _Over, found: Iterable[Finding]) -> Finding:
        """What was over although it was charged: part of the admission that was too much, if there was one."""
        for other in found:
            admitted = other.rule == self.name and one.node in self._nodes.get(other.cluster_queue, ())
            if admitted and other.begin <= one.window.begin and one.meets(other):
                return replace(self._finding(one, _ADMITTED, one.window.peak), part_of=other.id)
        return self._finding(one, self._reasons.get(one.node, _UNEXPLAINED), one.window.peak)

    def _finding(self, one: _Over, cause: str, peak: Mapping[str, int]) -> Finding:
        kind, name = one.node
        window, seconds = one.window, one.window.seconds(self.now)
        text = (
            f"{kind} {name} used {describe_all(peak)} more than its quota "
            f"{lasting(seconds, still=window.end is None)}: {_TELLS[cause]}"
        )
        return Finding(
            id=finding_id(self.name, f"{kind} {name} {cause}", window.begin.rev),
            rule=self.name,
            klass=self.klass,
            cause=cause,
            text=text,
            objects=self._refs(one),
            begin=window.begin,
            end=window.end,
            cluster_queue=one.cluster_queue,
            peak=peak,
            resource_seconds=window.resource_seconds(self.now),
            seconds=(seconds, seconds),
        )

    def _refs(self, one: _Over) -> tuple[Ref, ...]:
        queue = self.books.queues.get(one.cluster_queue)
        return (queue.ref if queue else Ref(CLUSTER_QUEUE, "", one.cluster_queue, ""),)


def _told(finding: Finding, parts: Mapping[NodeId, Mapping[str, int]]) -> Finding:
    """With how much of it was beyond a quota, and beyond whose."""
    if not parts:
        return finding
    told = "; ".join(
        f"up to {describe_all(over)} beyond the quota of {kind} {name}" for (kind, name), over in parts.items()
    )
    return replace(finding, over_quota=largest(*parts.values()), text=f"{finding.text}; {told}")
