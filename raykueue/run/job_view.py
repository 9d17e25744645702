"""What is seen and said of one submitted RayJob: by Kueue, by KubeRay, by its pods."""

from __future__ import annotations

import json
from typing import Any

from raykueue.errors import UsageError, WaitFailed
from raykueue.model.events import Moment, Object
from raykueue.model.requests import effective, live
from raykueue.model.views import condition, deleting, labels, status
from raykueue.model.workloads import charge, holds
from raykueue.run.history import History
from raykueue.run.resources import Resources, over_all_flavors
from raykueue.run.states import Gone, State


class JobView:
    """A RayJob as it is now, and was; nothing is waited for."""

    def __init__(self, history: History, manifest: Object) -> None:
        """`manifest`: as it was submitted."""
        self.history = history
        self.manifest = manifest

    @property
    def name(self) -> str:
        """Of the RayJob."""
        return self.history.name

    @property
    def namespace(self) -> str:
        """Of the RayJob."""
        return self.history.namespace

    def __repr__(self) -> str:
        return f"RayJob {self.name}"

    def moment(self, state: State) -> Moment:
        """When the job last came into `state`.

        Raises:
            WaitFailed: it never did.
        """
        moments = self.moments(state)
        if not moments:
            raise WaitFailed(f"{self} never was {state}; its story: {self.story()}")
        return moments[-1]

    def moments(self, state: State) -> list[Moment]:
        """Each time when the job came into `state`."""
        return [begun.moment for begun in self.history.begun() if state.matches(begun.state)]

    def was(self, state: State) -> bool:
        """Whether the job ever came into `state`."""
        return bool(self.moments(state))

    def story(self) -> list[State]:
        """What happened to it from its first admission on, in order: [Admitted, Running, Evicted("Preempted"), …]."""
        return self.history.story()

    @property
    def head(self) -> Object:
        """Its one head pod. Raises UsageError if there are others."""
        heads = self._heads()
        if len(heads) != 1:
            raise UsageError(f"{self} has {len(heads)} head pods, expected one; wait until it is Running")
        return heads[0]

    @property
    def job_status(self) -> str:
        """Ray's word: PENDING, RUNNING, SUCCEEDED, FAILED, STOPPED."""
        return str(self._status().get("jobStatus", ""))

    @property
    def deployment_status(self) -> str:
        """KubeRay's word: Initializing, Running, Complete, …"""
        return str(self._status().get("jobDeploymentStatus", ""))

    @property
    def why_pending(self) -> str:
        """Kueue's own words for why it has no quota; empty if it has, or was not looked at yet."""
        workload = self.history.workload()
        reserved = condition(workload, "QuotaReserved") if workload is not None else None
        return str(reserved.get("message", "")) if reserved and reserved["status"] == "False" else ""

    @property
    def charged(self) -> Resources:
        """What its Workload is charged now, over all PodSets; nothing if it holds no quota."""
        workload = self.history.workload()
        if workload is None or not holds(workload):
            return Resources()
        return over_all_flavors(charge(workload).totals)

    @property
    def pod_sets(self) -> dict[str, Resources]:
        """PodSet to what it is charged, all its pods together."""
        workload = self.history.workload()
        if workload is None or not holds(workload):
            return {}
        return {name: Resources(one.amounts) for name, one in charge(workload).pod_sets.items()}

    @property
    def pods(self) -> dict[str, Resources]:
        """PodSet to what its live pods ask, all together: head, submitter, worker groups."""
        asked: dict[str, Resources] = {}
        for pod in self.history.pods():
            if live(pod):
                asked[pod_set(pod)] = asked.get(pod_set(pod), Resources()) + Resources(effective(pod))
        return asked

    @property
    def running_pods(self) -> dict[str, int]:
        """PodSet to the number of its pods in phase Running."""
        counts: dict[str, int] = {}
        for pod in self.history.pods():
            if status(pod).get("phase") == "Running":
                counts[pod_set(pod)] = counts.get(pod_set(pod), 0) + 1
        return counts

    def left_behind(self) -> list[str]:
        """Everything that descends from the job and still exists, as "Kind name"."""
        return sorted(f"{kind} {one['metadata']['name']}" for kind, one in self.history.descendants())

    @property
    def said(self) -> str:
        """What KubeRay says of it, in one line."""
        job = self.history.rayjob()
        if job is None:
            return "gone" if self.history.is_in(Gone) else "not seen yet"
        return _short(status(job), ("jobDeploymentStatus", "jobStatus", "reason", "message")) or "without a status yet"

    def _heads(self) -> list[Object]:
        return [pod for pod in self.history.pods() if pod_set(pod) == "head"]

    def _status(self) -> dict[str, Any]:
        if self.history.is_in(Gone):
            raise UsageError(f"{self} is gone, and its status with it; ask before it is deleted")
        return dict(status(self.history.rayjob() or self.manifest))


def pod_set(pod: Object) -> str:
    """The PodSet that a pod of a job belongs to: head, submitter, or its worker group."""
    found = labels(pod)
    if "kueue.x-k8s.io/podset" in found:
        return found["kueue.x-k8s.io/podset"]
    node_type = found.get("ray.io/node-type", "submitter")
    return found.get("ray.io/group", "").lower() if node_type == "worker" else node_type


def _short(about: Any, fields: tuple[str, ...]) -> str:
    return ", ".join(f"{field} {json.dumps(about[field])}" for field in fields if about.get(field))


def conditions_told(workload: Object) -> str:
    """The conditions of a Workload in one line."""
    conditions = status(workload).get("conditions", ())
    return ", ".join(f"{one['type']}={one['status']} ({one['reason']})" for one in conditions) or "no conditions yet"


def pods_told(pods: list[Object]) -> str:
    """Pods in one line."""

    def told(pod: Object) -> str:
        going = ", terminating" if deleting(pod) else ""
        return f"{pod['metadata']['name']} {status(pod).get('phase', '?')}{going}"

    return "; ".join(told(pod) for pod in pods) or "none"
