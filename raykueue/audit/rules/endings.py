"""Why a hold ended: from its Workload as it ended, and the state of its job at that revision.

Causes and classes are those of rule `no-survivors`. Sources: kueue pkg/controller/jobframework/interface.go:64,
reconciler.go:463-480, pkg/controller/jobs/rayjob/rayjob_controller.go:107-110@v0.19.2; kuberay
ray-operator/controllers/ray/rayjob_controller.go:1323-1335@v1.6.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from raykueue.audit.books.entities import Hold, Job, Pod
from raykueue.model import views
from raykueue.model.events import Moment, Object
from raykueue.model.findings import Class
from raykueue.model.gates import Range
from raykueue.model.workloads import FINISHED, active

_OWNER_NOT_FOUND = "OwnerNotFound"
_INACTIVE = frozenset({"", "New", "Suspended"})
_COUNTS_NEW = Range("0.11.0-0")
_RACE_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Ending:
    """What ended a hold."""

    cause: str
    klass: Class
    tells: str


@dataclass(frozen=True, slots=True)
class JobState:
    """What a RayJob last said about its deployment, and since when. `status` is empty for a new one."""

    status: str
    since: Moment | None


def why(hold: Hold, job: Job, survivors: Iterable[Pod], state: JobState, pair: Mapping[str, str]) -> Ending:
    """Why an ended hold ended; `survivors` are its live pods at that revision."""
    finished = views.condition(hold.workload, FINISHED)
    if finished is not None and finished.get("status") == "True":
        if finished.get("reason") == _OWNER_NOT_FOUND:
            return _owner_deleted()
        return _finished(job.object)
    if hold.gone:
        if job.object is None or views.deleting(job.object):
            return _owner_deleted()
        return Ending("workload-deleted", "hazard", "its Workload was removed")
    if not active(hold.workload):
        return Ending("deactivated", "hazard", "its Workload was deactivated")
    if state.status == "ValidationFailed":
        return Ending("on-hold", "hazard", "its job failed validation and was put on hold")
    return _evicted(hold, job, survivors, state, pair)


def _owner_deleted() -> Ending:
    return Ending("owner-deleted", "hazard", "its job was deleted")


def _finished(job: Object | None) -> Ending:
    outcome = views.status(job).get("jobStatus", "") if job else ""
    policy = _policy(views.spec(job), str(outcome)) if job else None
    if policy == "":
        tells = f"its job finished with jobStatus {outcome or '(none)'}, for which no deletion policy acts"
        return Ending("finished/no-policy", "contract", tells)
    if policy == "DeleteWorkers":
        return Ending("finished/head-kept", "hazard", "its job finished, and its policy keeps the head")
    return Ending("finished/clean-up", "hazard", "its job finished, and its cluster is deleted afterwards")


def _policy(spec: Mapping[str, Any], outcome: str) -> str | None:
    """The deletion policy for an outcome; empty if none of a legacy strategy acts; None without such a strategy."""
    strategy = spec.get("deletionStrategy") or {}
    if not (strategy.get("onSuccess") or strategy.get("onFailure")):
        return spec.get("deletionPolicy")
    branch = {"SUCCEEDED": "onSuccess", "FAILED": "onFailure"}.get(outcome, "")
    return str((strategy.get(branch) or {}).get("policy", ""))


def _evicted(hold: Hold, job: Job, survivors: Iterable[Pod], state: JobState, pair: Mapping[str, str]) -> Ending:
    inactive = state.status in _INACTIVE if pair["kueue"] in _COUNTS_NEW else state.status == "Suspended"
    if inactive:
        if all(pod.state.terminating for pod in survivors):
            return Ending("evicted/terminating", "hazard", "it was evicted while its pods terminated")
        return Ending("evicted/not-yet-deleted", "hazard", "it was evicted before all its pods were deleted")
    if job.ref.kind != "RayJob":
        return Ending("evicted/early", "hazard", f"it was evicted while its {job.ref.kind} was not suspended")
    since = state.since
    if since is not None and hold.end is not None and hold.end.t - since.t < _RACE_NS:
        tells = f"it was evicted {hold.end - since:.0f} ms after its job went to {state.status}"
        return Ending("evicted/race", "hazard", tells)
    return Ending("evicted/early", "contract", f"it was evicted while its job was {state.status}")
