"""One Ray job as its dashboard tells it. Pure: times are passed in, in milliseconds since the epoch as Ray's are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class JobStatus(StrEnum):
    """The states of Ray (python/ray/dashboard/modules/job/common.py)."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"

    @property
    def terminal(self) -> bool:
        """It never changes again."""
        return self not in (JobStatus.PENDING, JobStatus.RUNNING)


_MESSAGES = {
    JobStatus.PENDING: "Job has not started yet. It may be waiting for resources.",
    JobStatus.RUNNING: "Job is currently running.",
    JobStatus.SUCCEEDED: "Job finished successfully.",
    JobStatus.FAILED: "Job entrypoint command failed.",
    JobStatus.STOPPED: "Job was intentionally stopped.",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ends, and its submitter after it."""

    exit_code: int = 0
    """Of the entrypoint: 0 succeeds, everything else fails."""
    message: str = ""
    """Empty: Ray's own words for the state."""
    stopped: bool = False
    """Stopped by somebody instead."""
    submitter_exit_code: int | None = None
    """None: what the submitter of that mode does (see `submitter_exit`)."""
    after_read: bool = False
    """The submitter ends only after the terminal state was read once."""

    @property
    def status(self) -> JobStatus:
        """The terminal state."""
        if self.stopped:
            return JobStatus.STOPPED
        return JobStatus.SUCCEEDED if self.exit_code == 0 else JobStatus.FAILED


def submitter_exit(ending: Ending, blocking: bool) -> int:
    """The exit code of a job's submitter.

    A K8sJobMode submitter submits with --no-wait and then follows the logs (ray-operator
    controllers/ray/common/job.go:90-212@v1.6.2, so since v1.3.2); `ray job logs --follow` exits 0 whatever became of
    the job. A SidecarMode submitter submits blocking; `ray job submit` exits 1 for FAILED and 0 for SUCCEEDED and
    STOPPED (both: ray-project/ray python/ray/dashboard/modules/job/cli.py@0718d5b).
    """
    if ending.submitter_exit_code is not None:
        return ending.submitter_exit_code
    return 1 if blocking and ending.status is JobStatus.FAILED else 0


@dataclass(slots=True, eq=False)
class Job:
    """One Ray job of one head."""

    namespace: str
    cluster: str
    submission_id: str
    entrypoint: str
    submitted: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    status: JobStatus = JobStatus.PENDING
    message: str = _MESSAGES[JobStatus.PENDING]
    ending: Ending | None = None
    lost: bool = False
    """Its head is gone, so nobody knows the job any more."""
    started: int | None = None
    ended: int | None = None
    read: int | None = None
    """When the terminal state was first read."""
    submitter: str = ""
    """The pod that submitted it, or follows its logs; empty for HTTP."""
    submitter_ended: int | None = None

    def run(self, now: int) -> None:
        """PENDING → RUNNING."""
        self.status, self.started = JobStatus.RUNNING, now
        self.message = _MESSAGES[self.status]

    def end(self, ending: Ending, now: int) -> None:
        """To the terminal state of `ending`."""
        self.ending, self.status, self.ended = ending, ending.status, now
        self.message = ending.message or _MESSAGES[self.status]

    def details(self) -> dict[str, Any]:
        """The answer of `GET /api/jobs/<submission id>`: Ray's JobDetails."""
        return {
            "type": "SUBMISSION",
            "job_id": None,
            "submission_id": self.submission_id,
            "driver_info": None,
            "status": str(self.status),
            "entrypoint": self.entrypoint,
            "message": self.message,
            "error_type": None,
            # Ray stamps the submission here, not the start of the driver.
            "start_time": self.submitted,
            "end_time": self.ended,
            "metadata": dict(self.metadata),
            "runtime_env": dict(self.runtime_env),
            "driver_agent_http_address": None,
            "driver_node_id": None,
            "driver_exit_code": None if self.ending is None or self.ending.stopped else self.ending.exit_code,
        }

    def times(self) -> dict[str, int | None]:
        """Milliseconds since the epoch; None: not yet, or never."""
        return {
            "submitted": self.submitted,
            "started": self.started,
            "ended": self.ended,
            "read": self.read,
            "submitter_ended": self.submitter_ended,
        }
