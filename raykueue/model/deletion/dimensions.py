"""The dimensions of the table of deletion policies, and a row: one value of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

TTL_SECONDS = 3
"""The waiting time of rows that have one: longer than KubeRay's 2 s of delay, so that none looks like zero."""
STAGE_SECONDS = (0, 3, 6)
"""Of DeleteWorkers, DeleteCluster and DeleteSelf in rules in stages. KubeRay looks 2 s after one is due, and would
skip one that is overtaken meanwhile (rayjob_controller.go:1537@v1.6.2)."""


class Policy(StrEnum):
    """What is deleted (apis/ray/v1/rayjob_types.go:186-189@v1.6.2); NONE: no policy is given."""

    NONE = "none"
    DELETE_CLUSTER = "DeleteCluster"
    DELETE_WORKERS = "DeleteWorkers"
    DELETE_SELF = "DeleteSelf"
    DELETE_NONE = "DeleteNone"


class Shape(StrEnum):
    """How the API lets a user say it."""

    SHUTDOWN = "shutdownAfterJobFinishes"
    """Nothing but this field, which every version has."""
    POLICY = "deletionPolicy"
    """spec.deletionPolicy: KubeRay 1.3 and 1.4."""
    STRATEGY = "onSuccess/onFailure"
    """spec.deletionStrategy with a policy for each outcome: from KubeRay 1.5."""
    RULES = "deletionRules"
    """spec.deletionStrategy.deletionRules, one for jobStatus SUCCEEDED and one for FAILED: from KubeRay 1.5."""
    FAILED_RULE = "deletionRules on jobDeploymentStatus"
    """One rule, for jobDeploymentStatus Failed: from KubeRay 1.6."""
    STAGES = "deletionRules in stages"
    """DeleteWorkers, then DeleteCluster, then DeleteSelf, for SUCCEEDED and for FAILED."""

    @property
    def by_rules(self) -> bool:
        """The waiting time is each rule's own."""
        return self in (Shape.RULES, Shape.FAILED_RULE, Shape.STAGES)


class Outcome(StrEnum):
    """How the job ends."""

    SUCCEEDED = "success"
    FAILED = "failure"
    STOPPED = "stop"
    DEADLINE_INITIALIZING = "deadline-initializing"
    """activeDeadlineSeconds, set once its pods are there, have passed while these find no node."""
    DEADLINE_RUNNING = "deadline-running"
    """activeDeadlineSeconds, set while the Ray job runs, have passed. In a manifest, a slow machine would meet them
    before."""
    RETRIES_USED_UP = "retries"
    """It fails, is tried again on a new cluster, and fails again."""


class Mode(StrEnum):
    """Who submits the Ray job."""

    K8S_JOB = "K8sJobMode"
    HTTP = "HTTPMode"
    SIDECAR = "SidecarMode"


@dataclass(frozen=True, slots=True)
class Row:
    """One RayJob, and how it ends."""

    policy: Policy
    shape: Shape
    outcome: Outcome = Outcome.SUCCEEDED
    queued: bool = True
    mode: Mode = Mode.K8S_JOB
    ttl: int = 0
    """Seconds: ttlSecondsAfterFinished, or ttlSeconds of each rule."""
    suspended: bool = False
    """Suspended and resumed before it ends."""
    shutdown: bool = True
    """shutdownAfterJobFinishes."""
    gate: bool = True
    """KubeRay's feature gate RayJobDeletionPolicy."""
    mistake: str = ""
    """The name of what is wrong with its spec beyond these dimensions (`mistakes.py`)."""

    @property
    def id(self) -> str:
        """Readable, and the same for ever: `delete-workers-on-failure-queued-k8sjob`."""
        if self.mistake:
            return f"refused-{self.mistake}"
        parts = [_POLICIES[self.policy] if self.policy is not Policy.NONE else _SHUTDOWN[self.shutdown]]
        parts += [_SHAPES[self.shape]] if self.shape in _SHAPES else []
        parts += [f"on-{self.outcome}", "queued" if self.queued else "unqueued", _MODES[self.mode]]
        parts += ["ttl"] if self.ttl else []
        parts += ["resumed"] if self.suspended else []
        if self.policy is not Policy.NONE and self.shutdown == self.shape.by_rules:
            parts.append("with-shutdown" if self.shutdown else "without-shutdown")
        parts += [] if self.gate else ["gate-off"]
        return "-".join(parts)

    def values(self) -> tuple[tuple[str, object], ...]:
        """(dimension, value) of every dimension; a TTL counts as none or some."""
        return (
            ("policy", self.policy if self.policy is not Policy.NONE else _SHUTDOWN[self.shutdown]),
            ("shape", self.shape),
            ("outcome", self.outcome),
            ("queued", self.queued),
            ("mode", self.mode),
            ("ttl", bool(self.ttl)),
            ("suspended", self.suspended),
            ("shutdown", self.shutdown),
            ("gate", self.gate),
        )


_POLICIES = {
    Policy.DELETE_CLUSTER: "delete-cluster",
    Policy.DELETE_WORKERS: "delete-workers",
    Policy.DELETE_SELF: "delete-self",
    Policy.DELETE_NONE: "delete-none",
}
_SHUTDOWN = {True: "shutdown", False: "keep"}
_SHAPES = {
    Shape.POLICY: "by-policy",
    Shape.RULES: "by-rules",
    Shape.FAILED_RULE: "by-failed-rule",
    Shape.STAGES: "in-stages",
}
_MODES = {Mode.K8S_JOB: "k8sjob", Mode.HTTP: "http", Mode.SIDECAR: "sidecar"}
