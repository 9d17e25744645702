"""A row as a manifest: a RayJob as a user wrote it, with the row's few fields in its spec."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from raykueue.model.deletion.dimensions import STAGE_SECONDS, Mode, Outcome, Policy, Row, Shape
from raykueue.model.deletion.mistakes import MISTAKES
from raykueue.model.views import QUEUE_NAME

FILES: Mapping[Mode, str] = {
    Mode.K8S_JOB: "rayjob.yaml",
    Mode.HTTP: "rayjob-http.yaml",
    Mode.SIDECAR: "rayjob-sidecar.yaml",
}
"""In `manifests/`."""

RETRIES = 1
_NOWHERE = {"raykueue.dev/no-such-node": "true"}


def rendered(row: Row, rayjob: Mapping[str, Any]) -> dict[str, Any]:
    """The row's RayJob, from the one in its file (`FILES`)."""
    changed = copy.deepcopy(dict(rayjob))
    if not row.queued or row.mistake:
        changed["metadata"].get("labels", {}).pop(QUEUE_NAME, None)
    spec = changed["spec"]
    if row.mistake:
        changed["spec"] = _laid_over(spec, MISTAKES[row.mistake].spec)
        return changed
    spec["shutdownAfterJobFinishes"] = row.shutdown
    spec |= _fields(row)
    if row.ttl and not row.shape.by_rules:
        spec["ttlSecondsAfterFinished"] = row.ttl
    if row.outcome is Outcome.RETRIES_USED_UP:
        spec["backoffLimit"] = RETRIES
    if row.outcome is Outcome.DEADLINE_INITIALIZING:
        cluster = spec["rayClusterSpec"]
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
            group["template"]["spec"]["nodeSelector"] = dict(_NOWHERE)
    return changed


def _fields(row: Row) -> dict[str, Any]:
    """What says what is deleted."""
    succeeded, failed = _by_outcome(row)
    match row.shape:
        case Shape.SHUTDOWN:
            return {}
        case Shape.POLICY:
            return {"deletionPolicy": row.policy.value}
        case Shape.STRATEGY:
            strategy: dict[str, Any] = {"onSuccess": {"policy": succeeded}, "onFailure": {"policy": failed}}
        case Shape.RULES:
            both = (("SUCCEEDED", succeeded), ("FAILED", failed))
            strategy = {"deletionRules": [_rule(policy, row.ttl, jobStatus=status) for status, policy in both]}
        case Shape.FAILED_RULE:
            strategy = {"deletionRules": [_rule(row.policy.value, row.ttl, jobDeploymentStatus="Failed")]}
        case Shape.STAGES:
            policies = (Policy.DELETE_WORKERS, Policy.DELETE_CLUSTER, Policy.DELETE_SELF)
            strategy = {
                "deletionRules": [
                    _rule(policy.value, seconds, jobStatus=status)
                    for status in ("SUCCEEDED", "FAILED")
                    for policy, seconds in zip(policies, STAGE_SECONDS, strict=True)
                ]
            }
    return {"deletionStrategy": strategy}


def _by_outcome(row: Row) -> tuple[str, str]:
    """The policies for success and for failure: the row's own where it ends so, another where it does not."""
    other = Policy.DELETE_WORKERS if row.policy is Policy.DELETE_CLUSTER else Policy.DELETE_CLUSTER
    own = row.policy.value
    match row.outcome:
        case Outcome.SUCCEEDED:
            return own, other.value
        case Outcome.FAILED | Outcome.RETRIES_USED_UP:
            return other.value, own
        case _:
            return own, own


def _rule(policy: str, ttl: int, **condition: str) -> dict[str, Any]:
    return {"policy": policy, "condition": {**condition, "ttlSeconds": ttl}}


def _laid_over(base: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in extra.items():
        old = result.get(key)
        if value is None:
            result.pop(key, None)
        else:
            both = isinstance(old, Mapping) and isinstance(value, Mapping)
            result[key] = _laid_over(old, value) if both and old is not None else value
    return result
