"""What ClusterQueues and Cohorts say: quota by spec, and what Kueue has booked, by status.

The two API versions differ in one name: a ClusterQueue's cohort is `spec.cohort` in v1beta1 and `spec.cohortName` in
v1beta2; a Cohort's parent is `spec.parent` in v1alpha1 and `spec.parentName` from v1beta1 on.
Sources: kueue apis/kueue/{v1beta1,v1beta2}/{clusterqueue,cohort}_types.go@v0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from raykueue.model.events import Object
from raykueue.model.quantities import amount
from raykueue.model.views import spec, status

FlavorResource: TypeAlias = tuple[str, str]
"""(flavor, resource)."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What a node of the quota tree has of one flavor's resource. None: no limit."""

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class QuotaSpec:
    """One node of the quota tree, a ClusterQueue or a Cohort, as its spec says."""

    parent: str = ""
    """Name of the cohort above; empty: none."""
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict)
    groups: tuple[tuple[frozenset[str], tuple[str, ...]], ...] = ()
    """Resource groups: (covered resources, flavors in order)."""

    @property
    def covered(self) -> frozenset[str]:
        """Every resource of any group."""
        return frozenset().union(*(resources for resources, _ in self.groups))

    def fill(self, flavors: Mapping[str, str]) -> dict[str, str]:
        """Resource to flavor, as assigned, and for a covered resource without one that of its resource group."""
        filled = dict(flavors)
        for resources, _ in self.groups:
            assigned = [flavors[r] for r in sorted(resources) if r in flavors]
            filled |= {r: assigned[0] for r in resources if assigned and r not in flavors}
        return filled


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a ClusterQueue's status."""

    total: int
    borrowed: int


@dataclass(frozen=True, slots=True)
class Booked:
    """What a ClusterQueue's status says is used. None: it doesn't say (no status yet, or not listed)."""

    reservation: Mapping[FlavorResource, Entry]
    usage: Mapping[FlavorResource, Entry]
    reserving: int | None
    admitted: int | None


def quota_spec(obj: Object) -> QuotaSpec:
    """The quota of a ClusterQueue or Cohort, of any API version. Raises ValueError for a malformed quantity."""
    body = spec(obj)
    parent = body.get("cohortName") or body.get("cohort") or body.get("parentName") or body.get("parent") or ""
    quotas: dict[FlavorResource, Quota] = {}
    groups: list[tuple[frozenset[str], tuple[str, ...]]] = []
    for group in body.get("resourceGroups") or ():
        names: list[str] = []
        for flavor in group.get("flavors") or ():
            names.append(str(flavor["name"]))
            for one in flavor.get("resources") or ():
                resource = str(one["name"])
                quotas[names[-1], resource] = Quota(
                    amount(resource, one.get("nominalQuota", 0)),
                    _limit(resource, one.get("borrowingLimit")),
                    _limit(resource, one.get("lendingLimit")),
                )
        groups.append((frozenset(group.get("coveredResources") or ()), tuple(names)))
    return QuotaSpec(str(parent), quotas, tuple(groups))


def booked(cluster_queue: Object) -> Booked:
    """What the status says is used: `flavorsReservation` and `flavorsUsage`, with the numbers of Workloads."""
    body = status(cluster_queue)
    reserving, admitted = body.get("reservingWorkloads"), body.get("admittedWorkloads")
    return Booked(
        _entries(body.get("flavorsReservation")),
        _entries(body.get("flavorsUsage")),
        None if reserving is None else int(reserving),
        None if admitted is None else int(admitted),
    )


def _limit(resource: str, quantity: Any) -> int | None:
    return None if quantity is None else amount(resource, quantity)


def _entries(flavors: Iterable[Mapping[str, Any]] | None) -> dict[FlavorResource, Entry]:
    return {
        (str(flavor["name"]), str(one["name"])): Entry(
            amount(str(one["name"]), one.get("total", 0)), amount(str(one["name"]), one.get("borrowed", 0))
        )
        for flavor in flavors or ()
        for one in flavor.get("resources") or ()
    }
