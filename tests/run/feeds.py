"""A feed that a test writes: one job's objects, revision by revision, a millisecond apart."""

from __future__ import annotations

from typing import Any

from raykueue.model.events import Event, EventType
from raykueue.run.feed import Feed
from raykueue.run.history import History
from raykueue.run.recorder.scopes import ScopeNames

NAMESPACE = "ns"
CLUSTER_KINDS = ("ClusterQueue", "ResourceFlavor")


def conditions(**states: str) -> list[dict[str, str]]:
    """`Admitted="True"`, or with a reason, `Evicted="True Preempted"`."""
    found = []
    for kind, state in states.items():
        value, _, reason = state.partition(" ")
        found.append({"type": kind, "status": value, "reason": reason or kind, "message": f"{kind} is {value}"})
    return found


class FakeFeed(Feed):
    """Has every object as last written, so that a test says what changes only."""

    def __init__(self) -> None:
        super().__init__(ScopeNames("s"))
        self.rev = 0
        self._objects: dict[tuple[str, str], dict[str, Any]] = {}

    def write(
        self, kind: str, name: str, owner: str = "", *, what: EventType | None = None, late_ms: int = 0, **fields: Any
    ) -> int:
        """One event, `late_ms` later than its turn; `owner` is "Kind name". Returns the revision."""
        self.rev += 1
        old = self._objects.get((kind, name))
        metadata = dict(old["metadata"]) if old else {"name": name, "uid": uid(kind, name)}
        if kind not in CLUSTER_KINDS:
            metadata["namespace"] = NAMESPACE
        if owner:
            owning, _, owner_name = owner.partition(" ")
            reference = {"kind": owning, "name": owner_name, "uid": uid(owning, owner_name), "controller": True}
            metadata["ownerReferences"] = [reference]
        metadata |= fields.pop("metadata", {})
        metadata["resourceVersion"] = str(self.rev)
        body = {"kind": kind, **(old or {}), **fields, "metadata": metadata}
        self._objects[kind, name] = body
        arrived = (self.rev + late_ms) * 1_000_000
        self.arrive(Event(kind, what or ("MODIFIED" if old else "ADDED"), self.rev, arrived, body))
        return self.rev

    def delete(self, kind: str, name: str) -> int:
        """The object goes."""
        return self.write(kind, name, what="DELETED")

    def job(self, deployment: str = "", job: str = "", name: str = "job") -> int:
        """KubeRay writes the RayJob's status."""
        status = {"jobDeploymentStatus": deployment} if deployment else {}
        return self.write("RayJob", name, status=status | ({"jobStatus": job} if job else {}))

    def workload(self, owner: str = "RayJob job", name: str = "workload", admission: Any = None, **states: str) -> int:
        """Kueue writes the Workload's status."""
        status = {"conditions": conditions(**states)} | ({"admission": admission} if admission else {})
        return self.write("Workload", name, owner, status=status)

    def history_of(self, name: str = "job") -> History:
        """Of one RayJob."""
        return History(self, NAMESPACE, name, uid("RayJob", name))


def uid(kind: str, name: str) -> str:
    return f"uid of {kind} {name}"


def admission(cpu: str = "2", queue: str = "queue", pod_set: str = "head") -> dict[str, Any]:
    """What a Workload with one PodSet of one pod is assigned."""
    assigned = {"name": pod_set, "count": 1, "flavors": {"cpu": "flavor"}, "resourceUsage": {"cpu": cpu}}
    return {"clusterQueue": queue, "podSetAssignments": [assigned]}


def preempted() -> FakeFeed:
    """A job that is admitted, runs, is preempted and waits again."""
    feed = FakeFeed()
    feed.job("Suspended")
    feed.workload(QuotaReserved="False Pending")
    feed.workload(QuotaReserved="True", admission=admission())
    feed.workload(QuotaReserved="True", Admitted="True", admission=admission())
    feed.job("Initializing")
    feed.job("Running", "PENDING")
    feed.job("Running", "RUNNING")
    feed.workload(QuotaReserved="True", Admitted="True", Evicted="True Preempted", admission=admission())
    feed.job("Suspending")
    feed.job("Suspended")
    feed.workload(QuotaReserved="False Pending", Admitted="False", Evicted="True Preempted", Requeued="True")
    return feed
