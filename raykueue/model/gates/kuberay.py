"""What versions of KubeRay do."""

from __future__ import annotations

from raykueue.model.gates.definition import Gate
from raykueue.model.gates.ranges import Range, since
from raykueue.model.gates.signs import Feature, Field

_TYPES = "kuberay ray-operator/apis/ray/v1/rayjob_types.go"
_VALIDATION = "kuberay ray-operator/controllers/ray/utils/validation.go"
_RAYJOB = "kuberay ray-operator/controllers/ray/rayjob_controller.go"
_RAYCLUSTER = "kuberay ray-operator/controllers/ray/raycluster_controller.go"
_FEATURES = "kuberay ray-operator/pkg/features/features.go"
_CRD = "rayjobs.ray.io"

KUBERAY: tuple[Gate, ...] = (
    # What is deleted after a job.
    Gate(
        "legacy-deletion-policy",
        "kuberay",
        (Range("1.3.0", "1.5.0-0"),),
        f"{_VALIDATION}:210-211@v1.4.2",
        "what is deleted after a job is said by spec.deletionPolicy, behind the gate RayJobDeletionPolicy",
        Field(_CRD, "spec.deletionPolicy"),
    ),
    Gate(
        "deletion-strategy",
        "kuberay",
        since("1.5.0"),
        f"{_TYPES}:236@v1.5.1 (kuberay#3731, #4040)",
        "what is deleted after a job is said by spec.deletionStrategy, for success and failure",
        Field(_CRD, "spec.deletionStrategy"),
    ),
    Gate(
        "deletion-strategy-default",
        "kuberay",
        since("1.6.0"),
        f"{_FEATURES}:65@v1.6.2",
        "spec.deletionStrategy works without setting the gate RayJobDeletionPolicy",
        Feature("kuberay", "RayJobDeletionPolicy"),
    ),
    Gate(
        "deletion-rule-on-failed",
        "kuberay",
        since("1.6.0"),
        f"{_TYPES}:159-161@v1.6.2 (kuberay#4262)",
        "a deletion rule can have jobDeploymentStatus Failed as its condition",
        Field(_CRD, "spec.deletionStrategy.deletionRules[].condition.jobDeploymentStatus"),
    ),
    # How a job is submitted, and how it ends.
    Gate(
        "sidecar-mode",
        "kuberay",
        since("1.5.0"),
        f"{_TYPES}:87@v1.5.1 (kuberay#3971)",
        "the submitter can be a container of the head pod",
    ),
    Gate(
        "validation-failed",
        "kuberay",
        since("1.5.0"),
        f"{_RAYJOB}:144-162@v1.5.1 (kuberay#3981)",
        "an invalid RayJob says ValidationFailed in its status; before, it stays without one",
    ),
    Gate(
        "head-not-replaced",
        "kuberay",
        (Range("1.5.0", "1.6.0-0"),),
        f"{_RAYCLUSTER}:681-700@v1.5.1",
        "the head of a RayJob's cluster is not made again once it was there: the job fails",
    ),
    Gate(
        "pre-running-deadline",
        "kuberay",
        since("1.6.0"),
        f"{_TYPES}:289-291@v1.6.2 (kuberay#4525)",
        "a RayJob can have a deadline for what comes before it runs",
        Field(_CRD, "spec.preRunningDeadlineSeconds"),
    ),
    # Names and fields.
    Gate(
        "ray-job-info",
        "kuberay",
        since("1.4.0"),
        f"{_TYPES}@v1.4.2",
        "the status says when the Ray job itself began and ended",
        Field(_CRD, "status.rayJobInfo"),
    ),
    Gate(
        "ray-auth",
        "kuberay",
        since("1.5.0"),
        "kuberay ray-operator/apis/ray/v1/raycluster_types.go:16@v1.5.1",
        "Ray's dashboard can ask for a token",
        Field("rayclusters.ray.io", "spec.authOptions"),
    ),
    Gate(
        "multi-host-index",
        "kuberay",
        since("1.6.0"),
        f"{_FEATURES}:66@v1.6.2",
        "the pods of a multi-host group carry their index",
        Feature("kuberay", "RayMultiHostIndexing"),
    ),
)
