"""The states of a job that tests wait for and talk about, as predicates over the journal.

Each state belongs to one object, the RayJob or its Workload, and begins with the event in which the predicate becomes
true. The words are Kueue's (apis/kueue/v1beta2/workload_types.go:931-1174@v0.19.2) and KubeRay's
(ray-operator/apis/ray/v1/rayjob_types.go:36-75@v1.6.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from raykueue.model.events import Object
from raykueue.model.views import condition, is_true, status


@dataclass(frozen=True, slots=True)
class State:
    """One state; equal to another of the same name and detail."""

    name: str
    kind: str = field(compare=False)
    """RayJob or Workload."""
    holds: Callable[[Object], bool] = field(compare=False)
    after: tuple[str, ...] = field(default=(), compare=False)
    """Names of states after which this one can't begin any more."""
    explain: Callable[[Object], str] = field(default=lambda _: "", compare=False)
    """The detail that a story tells: the reason of an eviction."""
    told: bool = field(default=True, compare=False)
    """Whether a story tells it."""
    detail: str = ""

    def __call__(self, detail: str) -> State:
        """This state with a detail: `Evicted("Preempted")`."""
        return replace(self, detail=detail)

    def matches(self, other: State) -> bool:
        """The same state; a detail matters only if this one has one."""
        return self.name == other.name and self.detail in ("", other.detail)

    def __str__(self) -> str:
        return f"{self.name}({self.detail!r})" if self.detail else self.name

    __repr__ = __str__


def _deployment(*values: str) -> Callable[[Object], bool]:
    return lambda job: status(job).get("jobDeploymentStatus", "") in values


def _true(kind: str) -> Callable[[Object], bool]:
    return lambda workload: is_true(workload, kind)


def _reason(kind: str) -> Callable[[Object], str]:
    return lambda workload: str((condition(workload, kind) or {}).get("reason", ""))


def _is_pending(workload: Object) -> bool:
    reserved = condition(workload, "QuotaReserved")
    return reserved is not None and reserved["status"] == "False" and not is_true(workload, "Finished")


def _waits_for_a_check(workload: Object) -> bool:
    checks = status(workload).get("admissionChecks") or ()
    return is_true(workload, "QuotaReserved") and any(check["state"] == "Pending" for check in checks)


def _is_running(job: Object) -> bool:
    about = status(job)
    return about.get("jobDeploymentStatus") == "Running" and about.get("jobStatus") == "RUNNING"


_OVER = ("Complete", "Failed", "ValidationFailed", "Gone")

Pending = State("Pending", "Workload", _is_pending, ("Finished", "Gone"), told=False)
"""Kueue has looked at it, and says why it can't have quota now."""
QuotaReserved = State("QuotaReserved", "Workload", _true("QuotaReserved"), ("Finished", "Gone"), told=False)
CheckPending = State("CheckPending", "Workload", _waits_for_a_check, ("Admitted", "Finished", "Gone"), told=False)
"""It holds quota, and Kueue asks for an AdmissionCheck that nobody has answered."""
Admitted = State("Admitted", "Workload", _true("Admitted"), ("Finished", "Gone"))
Evicted = State("Evicted", "Workload", _true("Evicted"), ("Finished", "Gone"), _reason("Evicted"))
Requeued = State("Requeued", "Workload", _true("Requeued"), ("Finished", "Gone"))
Finished = State("Finished", "Workload", _true("Finished"), (), told=False)
Initializing = State("Initializing", "RayJob", _deployment("Initializing"), _OVER, told=False)
Running = State("Running", "RayJob", _is_running, _OVER)
Suspended = State("Suspended", "RayJob", _deployment("Suspended"), _OVER)
Complete = State("Complete", "RayJob", _deployment("Complete"), ("Failed", "ValidationFailed", "Gone"))
Failed = State("Failed", "RayJob", _deployment("Failed"), ("Complete", "ValidationFailed", "Gone"))
ValidationFailed = State("ValidationFailed", "RayJob", _deployment("ValidationFailed"), ("Complete", "Failed", "Gone"))
Gone = State("Gone", "RayJob", lambda _: False)
"""The RayJob object is deleted."""

ALL = (
    Pending,
    QuotaReserved,
    CheckPending,
    Admitted,
    Evicted,
    Requeued,
    Finished,
    Running,
    Suspended,
    Complete,
    Failed,
    ValidationFailed,
    Gone,
)
