"""What the products do with a row, as their sources say and as was seen: who refuses it, and what is deleted when.

Files are KubeRay's in ray-operator/ unless they begin with "kueue". Where something seen differs from what is read in
the sources, it says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from raykueue.model.deletion.dimensions import STAGE_SECONDS, Mode, Outcome, Policy, Row, Shape
from raykueue.model.deletion.expected import Due, Expected, Forced, Hand, Part, Refusal, Status
from raykueue.model.deletion.mistakes import MISTAKES
from raykueue.model.gates import gate


@dataclass(frozen=True, slots=True)
class Law:
    """Rows that somebody refuses."""

    applies: Callable[[Row], bool]
    refusal: Refusal
    source: str
    needs: tuple[str, ...] = ()


REFUSALS: tuple[Law, ...] = (
    Law(
        lambda row: row.queued and not row.shutdown,
        Refusal(
            "Kueue", "spec.shutdownAfterJobFinishes", "a kueue managed job should delete the cluster after finishing"
        ),
        "kueue pkg/controller/jobs/rayjob/rayjob_webhook.go:139@v0.19.2",
    ),
    Law(
        lambda row: not row.gate,
        Refusal("KubeRay", "", "RayJobDeletionPolicy feature gate must be enabled to use DeletionStrategy"),
        "controllers/ray/utils/validation.go:506@v1.6.2",
        ("validation-failed",),
    ),
    Law(
        lambda row: row.shape.by_rules and row.shutdown,
        Refusal(
            "KubeRay",
            "",
            "The RayJob spec is invalid: spec.shutdownAfterJobFinishes and spec.deletionStrategy.deletionRules are "
            "mutually exclusive",
        ),
        "controllers/ray/utils/validation.go:513-515@v1.6.2; so no rule can be used with Kueue (kueue#3994)",
        ("validation-failed",),
    ),
    Law(
        lambda row: row.policy is Policy.DELETE_NONE and not row.shape.by_rules and row.shutdown,
        Refusal(
            "KubeRay",
            "",
            "The RayJob spec is invalid: shutdownAfterJobFinshes is set to 'true' while deletion policy is "
            "'DeleteNone'",  # the spelling is theirs
        ),
        "controllers/ray/utils/validation.go:703-705@v1.6.2",
        ("validation-failed",),
    ),
)
"""The first that applies decides: admission comes before KubeRay's own validation."""

_SHAPE_NEEDS = {
    Shape.POLICY: ("legacy-deletion-policy",),
    Shape.STRATEGY: ("deletion-strategy",),
    Shape.RULES: ("deletion-strategy",),
    Shape.STAGES: ("deletion-strategy",),
    Shape.FAILED_RULE: ("deletion-rule-on-failed", "failed-rule-passes"),
}
_STATUS = {
    Outcome.SUCCEEDED: Status("Complete", "SUCCEEDED"),
    Outcome.FAILED: Status("Failed", "FAILED", "AppFailed"),
    Outcome.STOPPED: Status("Complete", "STOPPED"),
    Outcome.DEADLINE_INITIALIZING: Status("Failed", "", "DeadlineExceeded"),
    Outcome.DEADLINE_RUNNING: Status("Failed", "RUNNING", "DeadlineExceeded"),
    Outcome.RETRIES_USED_UP: Status("Failed", "FAILED", "AppFailed"),
}
_SOURCES = {
    Shape.SHUTDOWN: "controllers/ray/rayjob_controller.go:1367-1409@v1.6.2",
    Shape.POLICY: "controllers/ray/rayjob_controller.go:345-408@v1.3.2",
    Shape.STRATEGY: "controllers/ray/rayjob_controller.go:1323-1364@v1.6.2",
    Shape.RULES: "controllers/ray/rayjob_controller.go:1265-1320@v1.6.2",
    Shape.FAILED_RULE: "controllers/ray/rayjob_controller.go:1265-1320@v1.6.2",
    Shape.STAGES: "controllers/ray/rayjob_controller.go:1265-1320, :1537@v1.6.2",
}
_COLLECTED: Hand = "the garbage collector"


def expected(row: Row, pair: Mapping[str, str]) -> Expected:
    """What the row comes to on this pair."""
    if row.mistake:
        mistake = MISTAKES[row.mistake]
        return Expected(mistake.source, mistake.needs, mistake.refusal)
    shape = _SHAPE_NEEDS.get(row.shape, ())
    for law in REFUSALS:
        if law.applies(row):
            return Expected(law.source, (*shape, *law.needs), law.refusal, _released(law.refusal, pair))
    parts = _parts(row)
    goes = {part: due for part, due in _goes(row, pair).items() if part in parts}
    return Expected(
        source=_SOURCES[row.shape],
        needs=(*shape, *_mode_needs(row)),
        status=_STATUS[row.outcome],
        parts=parts,
        goes=goes,
        forces=_forces(row, goes),
        ttl=row.ttl,
        remark=_remark(row, goes),
    )


def _released(refusal: Refusal, pair: Mapping[str, str]) -> bool:
    """Kueue may admit a job before KubeRay finds it invalid: it gives the quota back a second later, or never.

    Where a new job counts as active, it has no Workload before KubeRay has written Suspended: an invalid one has none.
    """
    never_given = not gate("workload-made-at-once").open_for(pair)
    return refusal.by != "KubeRay" or never_given or gate("invalid-job-on-hold").open_for(pair)


def needs_gate_set(row: Row, pair: Mapping[str, str]) -> bool | None:
    """How KubeRay's feature gate RayJobDeletionPolicy must be set for the row; None: as it is by default.

    KubeRay looks at the gate before it looks into a strategy (controllers/ray/utils/validation.go:434@v1.5.1), so
    what is wrong in there is told only with the gate on. The API server has no gate.
    """
    if row.mistake:
        mistake = MISTAKES[row.mistake]
        if mistake.refusal.by != "KubeRay" or "deletionStrategy" not in mistake.spec:
            return None
    elif row.shape is Shape.SHUTDOWN:
        return None
    by_default = gate("deletion-strategy-default").open_for(pair)
    return None if row.gate == by_default else row.gate


def acts(row: Row) -> bool:
    """Whether anything is deleted after this outcome."""
    if row.policy is Policy.DELETE_NONE:
        return False
    status = _STATUS[row.outcome]
    match row.shape:
        case Shape.SHUTDOWN:
            return row.shutdown
        case Shape.POLICY:
            return True
        case Shape.FAILED_RULE:
            return status.deployment == "Failed"
        case Shape.STRATEGY | Shape.RULES | Shape.STAGES:
            return status.job in ("SUCCEEDED", "FAILED")


def _goes(row: Row, pair: Mapping[str, str]) -> dict[Part, Due]:
    if not acts(row):
        return {}
    if row.shape is Shape.STAGES:
        workers, cluster, itself = STAGE_SECONDS
        return _self(itself) | _cluster(cluster) | _workers(workers)
    match row.policy:
        case Policy.DELETE_SELF:
            return _self(row.ttl)
        case Policy.DELETE_WORKERS:
            # KubeRay keeps the head; Kueue then suspends the cluster of a job that has finished, whole.
            suspended = row.queued and gate("finished-child-suspended").open_for(pair)
            return _workers(row.ttl) | ({Part.HEAD: Due(row.ttl, "Kueue")} if suspended else {})
        case _:
            return _cluster(row.ttl)


def _self(seconds: int) -> dict[Part, Due]:
    return dict.fromkeys(Part, Due(seconds, _COLLECTED)) | {Part.RAYJOB: Due(seconds)}


def _cluster(seconds: int) -> dict[Part, Due]:
    pods = Due(seconds, _COLLECTED)
    return {Part.CLUSTER: Due(seconds), Part.HEAD: pods, Part.WORKERS: pods}


def _workers(seconds: int) -> dict[Part, Due]:
    return {Part.WORKERS: Due(seconds)}


def _parts(row: Row) -> frozenset[Part]:
    submitter = row.mode is Mode.K8S_JOB and row.outcome is not Outcome.DEADLINE_INITIALIZING
    return frozenset(Part) if submitter else frozenset(Part) - {Part.SUBMITTER}


def _forces(row: Row, goes: Mapping[Part, Due]) -> tuple[Forced, ...]:
    """Quota is given back when the job ends, so a TTL is time in which nobody pays for its pods."""
    if not row.queued or not row.ttl or not goes:
        return ()
    cause = "finished/head-kept" if row.policy is Policy.DELETE_WORKERS else "finished/clean-up"
    return (Forced("no-survivors", cause, row.ttl - 1.0),)  # endTime has whole seconds only


def _mode_needs(row: Row) -> tuple[str, ...]:
    if row.mode is not Mode.SIDECAR:
        return ()
    return ("sidecar-mode", "sidecar-submitter-charged") if row.queued else ("sidecar-mode",)


def _remark(row: Row, goes: Mapping[Part, Due]) -> str:
    if row.policy in (Policy.NONE, Policy.DELETE_NONE) or goes:
        return ""
    return "nothing is deleted, and nothing says so: the policy has no rule for this outcome (kuberay#5184)"
