"""What a RayJob says about itself, or a RayCluster that is queued as a job of its own: suspended, finished, active.

Sources: kuberay ray-operator/apis/ray/v1/rayjob_types.go and controllers/ray/rayjob_controller.go:387-410, :1015-1032
@v1.6.2; kueue pkg/controller/jobs/rayjob/rayjob_controller.go:107-110, raycluster/raycluster_controller.go:90,
pkg/controller/jobframework/constants.go:20-21@v0.19.2.
"""

from __future__ import annotations

from raykueue.model.events import Object
from raykueue.model.gates import Range
from raykueue.model.views import annotation, is_true, labels, spec, status

SUSPENDED = "Suspended"
RETRYING = "Retrying"
WAITING = "Waiting"
VALIDATION_FAILED = "ValidationFailed"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"

_ENDED = frozenset({"Complete", "Failed"})
_NEW = frozenset({"", "New"})
_NEW_IS_INACTIVE = Range("0.11.0-0")
_SUBMITTER_IS_CHARGED = Range("0.10.0-0")
_MOST_POD_SETS = ((Range(before="0.18.0-0"), 8), (Range("0.18.0-0", "0.19.0-0"), 10), (Range("0.19.0-0"), 18))


def deployment_status(job: Object) -> str:
    """`status.jobDeploymentStatus` of a RayJob; empty for a new one."""
    return str(status(job).get("jobDeploymentStatus") or "")


def wants_suspension(job: Object) -> bool:
    """`spec.suspend`; false if missing."""
    return bool(spec(job).get("suspend"))


def says_suspended(kind: str, job: Object) -> bool:
    """It claims to be suspended: jobDeploymentStatus of a RayJob, state or condition of a RayCluster."""
    if kind == "RayCluster":
        return status(job).get("state") == "suspended" or is_true(job, "RayClusterSuspended")
    return deployment_status(job) == SUSPENDED


def ended(job: Object) -> bool:
    """The RayJob is over: Complete or Failed. ValidationFailed is not: KubeRay cleans nothing up then."""
    return deployment_status(job) in _ENDED


def inactive(kind: str, job: Object, kueue: str) -> bool:
    """Kueue takes it for having no pods, so it makes a Workload or lets quota go: Suspended, from 0.11 on New, too."""
    if kind == "RayCluster":
        return status(job).get("state") != "ready"
    said = deployment_status(job)
    return said == SUSPENDED or (said in _NEW and kueue in _NEW_IS_INACTIVE)


def prebuilt(job: Object) -> bool:
    """Somebody else makes its Workload."""
    return bool(labels(job).get(PREBUILT) or annotation(job, PREBUILT))


def fault_tolerant(job: Object) -> bool:
    """Its GCS keeps its state in Redis, so a Job cleans up there before its cluster is gone."""
    cluster = spec(job).get("rayClusterSpec") or spec(job)
    return bool(cluster.get("gcsFaultToleranceOptions")) or annotation(job, "ray.io/ft-enabled") == "true"


def too_many_pod_sets(job: Object, kueue: str) -> bool:
    """Its head, worker groups and submitter are more PodSets than a Workload of that Kueue may have.

    The webhook counts head and groups only, so a RayJob may pass it and still get no Workload.
    """
    cluster = spec(job).get("rayClusterSpec") or {}
    count = 1 + len(cluster.get("workerGroupSpecs") or ())
    if spec(job).get("submissionMode", "K8sJobMode") == "K8sJobMode" and kueue in _SUBMITTER_IS_CHARGED:
        count += 1
    return any(kueue in versions and count > most for versions, most in _MOST_POD_SETS)
