"""What a Kueue Workload says: whether it holds quota, for whom, and what it is charged.

v1beta1 and v1beta2 have the same shape in all of these fields. Sources: kueue pkg/workload/workload.go:642-752, :1270
and apis/kueue/v1beta2/workload_types.go@v0.19.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from raykueue.model.events import Object
from raykueue.model.quantities import amounts, scale
from raykueue.model.views import (
    ELASTIC,
    JOB_UID,
    REPLACES,
    annotation,
    condition,
    controller,
    is_true,
    labels,
    spec,
    status,
)

FINISHED = "Finished"
ADMITTED = "Admitted"
EVICTED = "Evicted"
QUOTA_RESERVED = "QuotaReserved"


@dataclass(frozen=True, slots=True)
class PodSetCharge:
    """What one PodSet of a hold is charged."""

    name: str
    count: int
    """Pods that were assigned."""
    left: int
    """Pods that the charge stands for: fewer than `count` after a scale-down or a reclaim."""
    flavors: Mapping[str, str]
    """Resource to flavor."""
    amounts: Mapping[str, int]
    """The whole PodSet's charge per resource, scaled to `left`; only resources with a flavor."""
    per_pod: Mapping[str, int]
    """The charge of one pod: the total divided by `count`, in integers."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What one hold is charged, as its Workload says at one revision."""

    cluster_queue: str
    admitted: bool
    pod_sets: Mapping[str, PodSetCharge] = field(default_factory=dict)
    totals: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(flavor, resource) to amount."""


def holds(workload: Object) -> bool:
    """It holds quota: reserved, admission present, not finished, active. A deleting one still holds.

    Source: HasActiveQuotaReservation, kueue pkg/workload/workload.go:1270@v0.19.2.
    """
    return (
        is_true(workload, QUOTA_RESERVED)
        and bool(status(workload).get("admission"))
        and not is_true(workload, FINISHED)
        and active(workload)
    )


def set_aside(workload: Object) -> bool:
    """It holds no quota, and Kueue will give it none: it is finished, inactive, or on hold.

    Source: IsOnHold and IsAdmissible, kueue pkg/workload/workload.go:1250,1279@v0.19.2.
    """
    if holds(workload):
        return False
    reserved = condition(workload, QUOTA_RESERVED)
    on_hold = reserved is not None and reserved["status"] == "False" and reserved.get("reason") == "OnHold"
    return is_true(workload, FINISHED) or not active(workload) or on_hold


def active(workload: Object) -> bool:
    """`spec.active`; true if missing."""
    return spec(workload).get("active") is not False


def job_uid(workload: Object) -> str:
    """The UID of the job it stands for: of its controller, else by label; empty if neither is there."""
    owner = controller(workload)
    return owner.uid if owner else labels(workload).get(JOB_UID, "")


def replaces(workload: Object) -> str:
    """The name of the Workload slice that this one replaces; empty if none."""
    return annotation(workload, REPLACES).rpartition("/")[2]


def elastic(job: Object) -> bool:
    """The job, or its Workload, may be scaled by slices."""
    return annotation(job, ELASTIC) == "true"


def template_containers(workload: Object, pod_set: str) -> frozenset[str]:
    """The names of all containers, init containers included, that the Workload was charged by."""
    for one in spec(workload).get("podSets") or ():
        if one.get("name") == pod_set:
            pod = (one.get("template") or {}).get("spec") or {}
            both = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
            return frozenset(str(container["name"]) for container in both)
    return frozenset()


def charge(workload: Object) -> Charge:
    """What the Workload is charged while it holds quota; call it only for one that `holds`.

    `resourceUsage` is already the total of all pods of a PodSet. It is scaled down when fewer pods are left than were
    assigned (reclaimable pods, elastic scale-down in place), never up. Raises ValueError for a malformed quantity.
    """
    admission: Mapping[str, Any] = status(workload)["admission"]
    wanted = {one.get("name"): int(one.get("count", 1)) for one in spec(workload).get("podSets") or ()}
    reclaimable = {one.get("name"): int(one.get("count", 0)) for one in status(workload).get("reclaimablePods") or ()}
    pod_sets: dict[str, PodSetCharge] = {}
    totals: dict[tuple[str, str], int] = {}
    for assigned in admission.get("podSetAssignments") or ():
        name = str(assigned.get("name", "main"))
        flavors = {r: f for r, f in (assigned.get("flavors") or {}).items() if f}
        count = int(assigned.get("count", wanted.get(name, 0)))
        asked = wanted.get(name, count)
        left = min(count, asked - min(reclaimable.get(name, 0), asked))
        usage = {r: v for r, v in amounts(assigned.get("resourceUsage")).items() if r in flavors}
        share = scale(usage, count, left)
        per_pod = {r: v // count for r, v in usage.items()} if count else {}
        pod_sets[name] = PodSetCharge(name, count, left, flavors, share, per_pod)
        for resource, value in share.items():
            key = (flavors[resource], resource)
            totals[key] = totals.get(key, 0) + value
    return Charge(str(admission.get("clusterQueue", "")), is_true(workload, ADMITTED), pod_sets, totals)
