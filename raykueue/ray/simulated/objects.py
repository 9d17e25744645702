"""What the simulated Ray reads from RayJobs and pods, and nothing else of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from raykueue.model.events import Object

K8S_JOB_MODE = "K8sJobMode"
SIDECAR_MODE = "SidecarMode"
HTTP_MODE = "HTTPMode"
INTERACTIVE_MODE = "InteractiveMode"

SIDECAR_CONTAINER = "ray-job-submitter"
"""ray-operator/controllers/ray/utils/constant.go SubmitterContainerName@v1.6.2."""

_TERMINAL_PHASES = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class RayJobView:
    """A RayJob as far as its Ray job depends on it."""

    namespace: str
    name: str
    uid: str
    mode: str
    submission_id: str
    """`status.jobId`; empty while there is no attempt."""
    cluster: str
    """`status.rayClusterName`; empty while there is no attempt."""
    service: str
    """The head Service that `status.dashboardURL` names; empty until the cluster is ready."""
    entrypoint: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    deployment_status: str = ""

    @property
    def submits_by_pod(self) -> bool:
        """A submitter pod or container submits, and its end is read by KubeRay."""
        return self.mode in (K8S_JOB_MODE, SIDECAR_MODE)


@dataclass(frozen=True, slots=True)
class Submitter:
    """A running submitter: a pod of its own, or one container of the head pod."""

    namespace: str
    pod: str
    uid: str
    submission_id: str
    """What its environment says (RAY_JOB_SUBMISSION_ID, rayjob_controller.go:628-629@v1.6.2), or empty."""
    container: str = ""
    """Empty: the whole pod is the submitter."""

    @property
    def key(self) -> tuple[str, str]:
        """Names it for ever."""
        return (self.uid, self.container)


@dataclass(frozen=True, slots=True)
class HeadView:
    """A running head pod."""

    namespace: str
    pod: str
    uid: str
    cluster: str
    sidecar: Submitter | None
    """The submitter container, while it runs."""


def read_rayjob(rayjob: Object) -> RayJobView:
    """Of a ray.io/v1 RayJob."""
    meta, spec, status = rayjob["metadata"], rayjob.get("spec", {}), rayjob.get("status", {})
    return RayJobView(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        mode=spec.get("submissionMode") or K8S_JOB_MODE,
        submission_id=status.get("jobId", ""),
        cluster=status.get("rayClusterName", ""),
        service=status.get("dashboardURL", "").partition(".")[0],
        entrypoint=spec.get("entrypoint", ""),
        metadata=spec.get("metadata") or {},
        deployment_status=status.get("jobDeploymentStatus", ""),
    )


def is_head(pod: Object) -> bool:
    """It is the head pod of a RayCluster."""
    return bool(_labels(pod).get("ray.io/node-type") == "head")


def is_redis_clean_up(pod: Object) -> bool:
    """It cleans Redis after a RayCluster with GCS fault tolerance (raycluster_controller.go:1455-1475@v1.6.2)."""
    return bool(_labels(pod).get("ray.io/node-type") == "redis-cleanup")


def submitter_job(pod: Object) -> str:
    """The batch Job that the pod belongs to, or empty. KubeRay names a submitter's Job after its RayJob."""
    owners = pod["metadata"].get("ownerReferences", [])
    if not any(owner.get("controller") and owner["kind"] == "Job" for owner in owners):
        return ""
    labels = _labels(pod)
    return str(labels.get("batch.kubernetes.io/job-name") or labels.get("job-name") or "")


def read_head(pod: Object) -> HeadView | None:
    """The head, or None while (or because) no Ray runs in the pod. A pod being deleted runs until it is gone."""
    status, meta = pod.get("status", {}), pod["metadata"]
    cluster = _labels(pod).get("ray.io/cluster", "")
    if status.get("phase") != "Running" or not cluster:
        return None
    sidecar = None
    if not meta.get("deletionTimestamp") and _is_running(status, SIDECAR_CONTAINER):
        sidecar = Submitter(meta["namespace"], meta["name"], meta["uid"], "", SIDECAR_CONTAINER)
    return HeadView(meta["namespace"], meta["name"], meta["uid"], cluster, sidecar)


def read_submitter(pod: Object) -> Submitter | None:
    """The submitter pod, or None unless it runs and nobody has asked it to end."""
    meta = pod["metadata"]
    if pod.get("status", {}).get("phase") != "Running" or meta.get("deletionTimestamp"):
        return None
    submission_id = next(
        (
            str(variable.get("value", ""))
            for container in pod["spec"]["containers"]
            for variable in container.get("env", [])
            if variable["name"] == "RAY_JOB_SUBMISSION_ID"
        ),
        "",
    )
    return Submitter(meta["namespace"], meta["name"], meta["uid"], submission_id)


def is_over(pod: Object) -> bool:
    """The pod has ended and stays only as an object."""
    return pod.get("status", {}).get("phase") in _TERMINAL_PHASES


def _labels(pod: Object) -> Mapping[str, Any]:
    return pod["metadata"].get("labels") or {}


def _is_running(status: Mapping[str, Any], container: str) -> bool:
    return any(
        entry["name"] == container and "running" in entry.get("state", {})
        for entry in status.get("containerStatuses", [])
    )
