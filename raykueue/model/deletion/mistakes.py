"""Specs that are refused whatever the outcome would be: one mistake each, in an otherwise good RayJob."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raykueue.model.deletion.expected import Refusal


@dataclass(frozen=True, slots=True)
class Mistake:
    """A RayJob without a queue, with these fields in its spec, is refused."""

    spec: Mapping[str, Any]
    """Laid over the spec; None takes a field away."""
    refusal: Refusal
    source: str
    needs: tuple[str, ...] = ("deletion-strategy",)


def _rule(policy: str, ttl: int = 0, **condition: str) -> dict[str, Any]:
    return {"policy": policy, "condition": {**condition, "ttlSeconds": ttl}}


def _rules(*rules: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    return {"shutdownAfterJobFinishes": False, "deletionStrategy": {"deletionRules": list(rules)}, **spec}


def _both(policy: str, **spec: Any) -> dict[str, Any]:
    strategy = {"onSuccess": {"policy": policy}, "onFailure": {"policy": policy}}
    return {"deletionStrategy": strategy, **spec}


_TYPES = "apis/ray/v1/rayjob_types.go"
_VALIDATION = "controllers/ray/utils/validation.go"
_STRATEGY = "spec.deletionStrategy"
_RULE = "spec.deletionStrategy.deletionRules[0]"
_FAILS = ("deletion-strategy", "validation-failed")

MISTAKES: Mapping[str, Mistake] = {
    "both-styles": Mistake(
        {
            "deletionStrategy": {
                "onSuccess": {"policy": "DeleteCluster"},
                "onFailure": {"policy": "DeleteCluster"},
                "deletionRules": [_rule("DeleteCluster", jobStatus="SUCCEEDED")],
            }
        },
        Refusal(
            "API server",
            _STRATEGY,
            "legacy policies (onSuccess/onFailure) and deletionRules cannot be used together within the same "
            "deletionStrategy",
        ),
        f"{_TYPES}:108@v1.6.2",
    ),
    "success-without-failure": Mistake(
        {"deletionStrategy": {"onSuccess": {"policy": "DeleteCluster"}}},
        Refusal(
            "API server",
            _STRATEGY,
            "deletionStrategy requires either BOTH onSuccess and onFailure, OR the deletionRules field (cannot be "
            "empty)",
        ),
        f"{_TYPES}:109@v1.6.2",
    ),
    "no-rules": Mistake(
        _rules(),
        Refusal(
            "API server",
            f"{_STRATEGY}.deletionRules",
            "spec.deletionStrategy.deletionRules in body should have at least 1 items",
        ),
        f"{_TYPES}:132@v1.6.2",
    ),
    "unknown-policy": Mistake(
        {"deletionStrategy": {"onSuccess": {"policy": "DeleteCluster"}, "onFailure": {"policy": "DeleteHead"}}},
        Refusal(
            "API server",
            f"{_STRATEGY}.onFailure.policy",
            'supported values: "DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone"',
        ),
        f"{_TYPES}:180@v1.6.2",
    ),
    "negative-ttl-of-a-rule": Mistake(
        _rules(_rule("DeleteCluster", -1, jobStatus="SUCCEEDED")),
        Refusal(
            "API server",
            f"{_RULE}.condition.ttlSeconds",
            "spec.deletionStrategy.deletionRules[0].condition.ttlSeconds in body should be greater than or equal to 0",
        ),
        f"{_TYPES}:168@v1.6.2",
    ),
    "rule-with-two-conditions": Mistake(
        _rules(_rule("DeleteCluster", jobStatus="FAILED", jobDeploymentStatus="Failed")),
        Refusal(
            "API server",
            f"{_RULE}.condition",
            "JobStatus and JobDeploymentStatus cannot be used together within the same deletion condition.",
        ),
        f"{_TYPES}:148@v1.6.2",
        ("deletion-rule-on-failed",),
    ),
    "rule-without-condition": Mistake(
        _rules(_rule("DeleteCluster")),
        Refusal(
            "API server",
            f"{_RULE}.condition",
            "the deletion condition requires either the JobStatus or the JobDeploymentStatus field.",
        ),
        f"{_TYPES}:149@v1.6.2",
        ("deletion-rule-on-failed", "failed-rule-passes"),
    ),
    "two-rules-alike": Mistake(
        _rules(_rule("DeleteCluster", jobStatus="FAILED"), _rule("DeleteCluster", 5, jobStatus="FAILED")),
        Refusal(
            "KubeRay",
            "",
            "deletionRules[1]: duplicate rule for DeletionPolicyType 'DeleteCluster' and JobStatus 'FAILED'",
        ),
        f"{_VALIDATION}:578@v1.6.2",
        _FAILS,
    ),
    "workers-after-the-cluster": Mistake(
        _rules(_rule("DeleteWorkers", 9, jobStatus="FAILED"), _rule("DeleteCluster", 3, jobStatus="FAILED")),
        Refusal("KubeRay", "", "for JobStatus 'FAILED': DeleteCluster TTL (3) must be >= DeleteWorkers TTL (9)"),
        f"{_VALIDATION}:630-669@v1.6.2",
        _FAILS,
    ),
    "ttl-without-shutdown": Mistake(
        {"shutdownAfterJobFinishes": False, "ttlSecondsAfterFinished": 5},
        Refusal(
            "KubeRay",
            "",
            "The RayJob spec is invalid: a RayJob with shutdownAfterJobFinishes set to false cannot have "
            "TTLSecondsAfterFinished",
        ),
        f"{_VALIDATION}:495-497@v1.6.2",
        ("validation-failed",),
    ),
    "negative-ttl": Mistake(
        {"ttlSecondsAfterFinished": -1},
        Refusal("KubeRay", "", "The RayJob spec is invalid: TTLSecondsAfterFinished must be a non-negative integer"),
        f"{_VALIDATION}:297-299@v1.6.2",
        ("validation-failed",),
    ),
    "suspended-without-shutdown": Mistake(
        {"shutdownAfterJobFinishes": False, "suspend": True},
        Refusal(
            "KubeRay",
            "",
            "The RayJob spec is invalid: a RayJob with shutdownAfterJobFinishes set to false is not allowed to be "
            "suspended",
        ),
        f"{_VALIDATION}:293-295@v1.6.2",
        ("validation-failed",),
    ),
    "workers-of-an-autoscaler": Mistake(
        {**_both("DeleteWorkers"), "rayClusterSpec": {"enableInTreeAutoscaling": True}},
        Refusal(
            "KubeRay",
            "",
            "DeletionStrategy=DeleteWorkers currently does not support RayCluster with autoscaling enabled",
        ),
        f"{_VALIDATION}:698-701@v1.6.2",
        _FAILS,
    ),
    "rule-for-workers-of-an-autoscaler": Mistake(
        {
            **_rules(_rule("DeleteWorkers", jobStatus="FAILED")),
            "rayClusterSpec": {"enableInTreeAutoscaling": True},
        },
        Refusal(
            "KubeRay", "", "deletionRules[0]: DeletionPolicyType 'DeleteWorkers' not supported with autoscaling enabled"
        ),
        f"{_VALIDATION}:560-564@v1.6.2",
        _FAILS,
    ),
    "borrowed-cluster": Mistake(
        {**_both("DeleteCluster"), "rayClusterSpec": None, "clusterSelector": {"ray.io/cluster": "of-somebody-else"}},
        Refusal("KubeRay", "", "the ClusterSelector mode doesn't support DeletionStrategy=DeleteCluster on success"),
        f"{_VALIDATION}:688-690@v1.6.2; kuberay#3714",
        _FAILS,
    ),
    "rule-for-a-borrowed-cluster": Mistake(
        {
            **_rules(_rule("DeleteCluster", jobStatus="FAILED")),
            "rayClusterSpec": None,
            "clusterSelector": {"ray.io/cluster": "of-somebody-else"},
        },
        Refusal(
            "KubeRay",
            "",
            "deletionRules[0]: DeletionPolicyType 'DeleteCluster' not supported when ClusterSelector is set",
        ),
        f"{_VALIDATION}:556-559@v1.6.2",
        _FAILS,
    ),
}
"""By name: `refused-<name>` is the row's id."""
