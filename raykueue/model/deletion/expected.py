"""What a row is expected to come to: it is refused, or it runs, ends, and leaves exactly this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

REQUEUE_SECONDS = 3.0
"""KubeRay looks at least so often (rayjob_controller.go:39@v1.6.2)."""
KUBERAY_SECONDS = REQUEUE_SECONDS + 1.0
"""So it acts at most so long after something is due: 1 s more since endTime has whole seconds only. (It asks to be
called 2 s after it is due, rayjob_controller.go:1703@v1.6.2.)"""
BUSY_SECONDS = 1.0
"""KubeRay's one worker has other RayJobs to look after, on a machine that may be busy."""
FOLLOWING_SECONDS = 5.0
"""Pods go after their RayCluster was deleted or its workers suspended, everything after its RayJob was deleted."""

By: TypeAlias = Literal["API server", "Kueue", "KubeRay"]
Hand: TypeAlias = Literal["KubeRay", "Kueue", "the garbage collector"]


class Part(StrEnum):
    """What may be left of a job."""

    HEAD = "head"
    WORKERS = "workers"
    SUBMITTER = "submitter"
    """The batch Job and its pods, which have ended."""
    CLUSTER = "RayCluster"
    RAYJOB = "RayJob"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Somebody refuses the RayJob."""

    by: By
    field: str
    """Of the RayJob, as the refusal names it; empty if it names none."""
    message: str


@dataclass(frozen=True, slots=True)
class Status:
    """How the RayJob says that it ended."""

    deployment: str
    """jobDeploymentStatus"""
    job: str
    """jobStatus"""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Due:
    """A part goes: so long after status.endTime, and by whose hand."""

    seconds: int
    by: Hand = "KubeRay"


@dataclass(frozen=True, slots=True)
class Forced:
    """A finding of the ledger that the row forces: it must appear, and last at least so long."""

    rule: str
    cause: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Expected:
    """What a row comes to on one pair. With a refusal, everything about an end is empty."""

    source: str
    """Where it is read: file@version."""
    needs: tuple[str, ...] = ()
    """Gates (`raykueue/model/gates/`) without which the row does not apply."""
    refusal: Refusal | None = None
    released: bool = True
    """Quota that it was given before it was refused comes back, or it is given none; else it may be kept for ever."""
    status: Status = Status("", "")
    parts: frozenset[Part] = frozenset()
    """What there is when the job ends."""
    goes: Mapping[Part, Due] = field(default_factory=dict)
    forces: tuple[Forced, ...] = ()
    ttl: int = 0
    """Seconds: what is to be deleted is due so long after the end, or never."""
    remark: str = ""
    """What a user should know of it."""

    @property
    def kept(self) -> frozenset[Part]:
        """What is left for ever."""
        return self.parts - self.goes.keys()

    @property
    def patience(self) -> float:
        """Seconds after status.endTime until which everything that goes is gone."""
        return max((latest(part, due) for part, due in self.goes.items()), default=0.0)

    @property
    def watch(self) -> float:
        """Seconds after status.endTime until which what is kept must be seen to stay; 0: nobody could take it."""
        if not self.kept & {Part.HEAD, Part.WORKERS, Part.CLUSTER}:
            return 0.0
        last = max((due.seconds for due in self.goes.values()), default=self.ttl)
        return last + KUBERAY_SECONDS + BUSY_SECONDS

    def untimely(self, went: Mapping[Part, float]) -> list[str]:
        """What went too early, too late, or before what should go first; `went`: seconds after status.endTime."""
        told = []
        for part, due in self.goes.items():
            if part in went and not due.seconds <= went[part] <= latest(part, due):
                when = f"{due.seconds} s to {latest(part, due):g} s after status.endTime"
                told.append(f"{part} went {went[part]:.2f} s after status.endTime, expected {when}, by {due.by}")
        for first, before in self.goes.items():
            for second, after in self.goes.items():
                both = first in went and second in went
                # The garbage collector has other things to do: what it owes may be told to go when the next is due.
                follows = FOLLOWING_SECONDS if before.by == "the garbage collector" else 0.0
                if both and before.seconds < after.seconds and went[first] > went[second] + follows:
                    told.append(f"{first} went after {second}, though it is due {before.seconds} s after the end")
        return told


def latest(part: Part, due: Due) -> float:
    """Seconds after status.endTime until which it must be told to go."""
    at_once = due.by == "KubeRay" and part in (Part.CLUSTER, Part.RAYJOB)
    return due.seconds + KUBERAY_SECONDS + BUSY_SECONDS + (0.0 if at_once else FOLLOWING_SECONDS)
