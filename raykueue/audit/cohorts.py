"""The quota tree: how much a ClusterQueue may still use, through its cohorts, by Kueue's own arithmetic.

Nodes are ClusterQueues (leaves) and cohorts, the latter explicit objects or just names. All of a tree share each
(flavor, resource). Source: kueue pkg/cache/scheduler/resource_node.go:67-240@v0.19.2, the same since v0.10.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from raykueue.model.queues import FlavorResource, Quota, QuotaSpec

NodeId: TypeAlias = tuple[str, str]
"""("ClusterQueue" | "Cohort", name)."""

CLUSTER_QUEUE = "ClusterQueue"
COHORT = "Cohort"

_NONE = Quota()


class CohortCycle(ValueError):
    """Cohorts are their own ancestors; Kueue deactivates all of them, so no arithmetic applies."""


@dataclass(slots=True)
class _Node:
    spec: QuotaSpec = field(default_factory=QuotaSpec)
    explicit: bool = False
    children: set[NodeId] = field(default_factory=set)
    use: dict[FlavorResource, int] = field(default_factory=dict)
    subtree: dict[FlavorResource, int] = field(default_factory=dict)
    fresh: bool = False
    """`use` of a cohort, and `subtree`, are those of the current specs; the same for all of a tree."""


class QuotaTree:
    """All trees of a cluster. Adding use costs the depth of the tree; a new spec costs its size, once."""

    def __init__(self) -> None:
        self._nodes: dict[NodeId, _Node] = {}

    def define(self, node: NodeId, spec: QuotaSpec | None) -> None:
        """The node's spec is this from now on; None: the object is gone (a cohort's name may still be referred to)."""
        entry = self._node(node)
        self._stale(node)
        self._unlink(node, entry.spec.parent)
        entry.spec, entry.explicit = spec or QuotaSpec(), spec is not None
        if entry.spec.parent:
            self._node((COHORT, entry.spec.parent)).children.add(node)
        self._stale(node)
        self._prune(node)

    def spec(self, node: NodeId) -> QuotaSpec | None:
        """The node's spec; None if it has no object."""
        entry = self._nodes.get(node)
        return entry.spec if entry and entry.explicit else None

    def add(self, cluster_queue: str, key: FlavorResource, amount: int) -> None:
        """The leaf uses that much more (or less). What it doesn't keep to itself goes up to its cohort."""
        node: NodeId | None = (CLUSTER_QUEUE, cluster_queue)
        self._node((CLUSTER_QUEUE, cluster_queue))
        if not self._refresh((CLUSTER_QUEUE, cluster_queue)):
            entry = self._nodes[CLUSTER_QUEUE, cluster_queue]
            entry.use[key] = entry.use.get(key, 0) + amount
            return
        while node is not None and amount:
            entry = self._nodes[node]
            local = self._local(entry, key)
            before = entry.use.get(key, 0)
            entry.use[key] = before + amount
            amount = max(0, before + amount - local) - max(0, before - local)
            node = self._parent(node)

    def use(self, node: NodeId, key: FlavorResource) -> int:
        """What the node's subtree uses that it can't keep local. Raises CohortCycle."""
        self._need(node)
        return self._nodes[node].use.get(key, 0) if node in self._nodes else 0

    def keys(self, node: NodeId) -> list[FlavorResource]:
        """Of what the node's subtree was ever used. Raises CohortCycle."""
        self._need(node)
        return list(self._nodes[node].use) if node in self._nodes else []

    def subtree(self, node: NodeId, key: FlavorResource) -> int:
        """What the node's subtree has, without what its children don't lend. Raises CohortCycle."""
        self._need(node)
        return self._nodes[node].subtree.get(key, 0) if node in self._nodes else 0

    def local(self, node: NodeId, key: FlavorResource) -> int:
        """What the node never lends to its parent. Raises CohortCycle."""
        self._need(node)
        return self._local(self._nodes[node], key) if node in self._nodes else 0

    def available(self, node: NodeId, key: FlavorResource) -> int:
        """What the node may use beyond what it does; negative if it, or somebody above, is over. Raises CohortCycle."""
        self._need(node)
        return self._available(node, key) if node in self._nodes else 0

    def over(self, node: NodeId, key: FlavorResource) -> int:
        """How much more the node uses than it may; 0 if it doesn't. Raises CohortCycle.

        At the root: beyond what the tree has. At another node: beyond what it may borrow.
        """
        self._need(node)
        return max(0, self._over(node, key))

    def over_use(self, cluster_queue: str, key: FlavorResource) -> dict[NodeId, int]:
        """Where on the way from the leaf to the root more is used than allowed, and how much. Raises CohortCycle."""
        self._need((CLUSTER_QUEUE, cluster_queue))
        over = {node: self._over(node, key) for node in self.path(cluster_queue)}
        return {node: value for node, value in over.items() if value > 0}

    def path(self, cluster_queue: str) -> list[NodeId]:
        """From the leaf up to its root. Raises CohortCycle."""
        return self.above((CLUSTER_QUEUE, cluster_queue))

    def above(self, start: NodeId) -> list[NodeId]:
        """The node, and everything above it up to the root. Raises CohortCycle."""
        nodes: list[NodeId] = []
        node: NodeId | None = start
        while node is not None:
            if node in nodes:
                raise CohortCycle(f"cohorts {' > '.join(name for _, name in nodes)} form a cycle")
            nodes.append(node)
            node = self._parent(node)
        return nodes

    def _available(self, node: NodeId, key: FlavorResource) -> int:
        entry = self._nodes[node]
        subtree, use, local = entry.subtree.get(key, 0), entry.use.get(key, 0), self._local(entry, key)
        parent = self._parent(node)
        if parent is None:
            return subtree - use
        above = self._available(parent, key)
        limit = entry.spec.quotas.get(key, _NONE).borrowing_limit
        if limit is not None:
            above = min(above, subtree - local - max(0, use - local) + limit)
        return max(0, local - use) + above

    def _over(self, node: NodeId, key: FlavorResource) -> int:
        entry = self._nodes.get(node, _Node())
        subtree, use, local = entry.subtree.get(key, 0), entry.use.get(key, 0), self._local(entry, key)
        if self._parent(node) is None:
            return use - subtree
        limit = entry.spec.quotas.get(key, _NONE).borrowing_limit
        return 0 if limit is None else max(0, use - local) - (subtree - local) - limit

    def _local(self, entry: _Node, key: FlavorResource) -> int:
        limit = entry.spec.quotas.get(key, _NONE).lending_limit
        return 0 if limit is None else max(0, entry.subtree.get(key, 0) - limit)

    def _node(self, node: NodeId) -> _Node:
        return self._nodes.setdefault(node, _Node())

    def _parent(self, node: NodeId) -> NodeId | None:
        entry = self._nodes.get(node)
        return (COHORT, entry.spec.parent) if entry and entry.spec.parent else None

    def _need(self, node: NodeId) -> None:
        if not self._refresh(node):
            raise CohortCycle(f"the cohorts above {node[0]} {node[1]} form a cycle")

    def _refresh(self, node: NodeId) -> bool:
        """Sums up the node's whole tree if a spec in it changed; False if it has a cycle."""
        entry = self._nodes.get(node)
        if entry is None or entry.fresh:
            return True
        seen = {node}
        while (parent := self._parent(node)) is not None:
            if parent in seen:
                return False
            seen.add(parent)
            node = parent
        self._sum_up(node)
        return True

    def _sum_up(self, node: NodeId) -> None:
        entry = self._nodes[node]
        entry.subtree = {key: quota.nominal for key, quota in entry.spec.quotas.items()}
        if node[0] == COHORT:
            entry.use = {}
        for child in entry.children:
            self._sum_up(child)
            below = self._nodes[child]
            for key, value in below.subtree.items():
                entry.subtree[key] = entry.subtree.get(key, 0) + value - self._local(below, key)
            for key, value in below.use.items():
                lent = max(0, value - self._local(below, key))
                entry.use[key] = entry.use.get(key, 0) + lent
        entry.fresh = True

    def _stale(self, node: NodeId) -> None:
        """Everything in the node's tree must be summed up again."""
        root, seen = node, {node}
        while (parent := self._parent(root)) is not None and parent not in seen:
            seen.add(parent)
            root = parent
        for below in list(self._below(root, set())):
            self._nodes[below].fresh = False

    def _below(self, node: NodeId, seen: set[NodeId]) -> Iterator[NodeId]:
        if node in seen or node not in self._nodes:
            return
        seen.add(node)
        yield node
        for child in self._nodes[node].children:
            yield from self._below(child, seen)

    def _unlink(self, node: NodeId, parent: str) -> None:
        if parent:
            above: NodeId = (COHORT, parent)
            self._nodes[above].children.discard(node)
            self._prune(above)

    def _prune(self, node: NodeId) -> None:
        """Drops a node that has no object, no children and no use."""
        entry = self._nodes.get(node)
        if entry and not entry.explicit and not entry.children and not any(entry.use.values()):
            del self._nodes[node]
