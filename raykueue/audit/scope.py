"""What belongs to one test: its namespaces, ClusterQueues, flavors and cohorts. No two scopes share any of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from raykueue.model.findings import Finding


@dataclass(frozen=True, slots=True)
class Scope:
    """One test's share of the cluster, by name."""

    namespaces: frozenset[str] = frozenset()
    cluster_queues: frozenset[str] = frozenset()
    flavors: frozenset[str] = frozenset()
    cohorts: frozenset[str] = frozenset()

    def owns(self, namespace: str, cluster_queue: str) -> bool:
        """By the namespace of who pays, else by the ClusterQueue."""
        return namespace in self.namespaces if namespace else cluster_queue in self.cluster_queues

    def has(self, finding: Finding) -> bool:
        return self.owns(finding.namespace, finding.cluster_queue)


def union(scopes: Iterable[Scope]) -> Scope:
    """Everything that any of them owns."""
    listed = list(scopes)
    return Scope(
        frozenset().union(*(s.namespaces for s in listed)),
        frozenset().union(*(s.cluster_queues for s in listed)),
        frozenset().union(*(s.flavors for s in listed)),
        frozenset().union(*(s.cohorts for s in listed)),
    )
