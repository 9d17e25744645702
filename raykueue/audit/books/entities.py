"""What the books keep: jobs, holds, pods, queues. Identified by UID for ever; rules read them and never write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from raykueue.model.events import Moment, Object
from raykueue.model.findings import Ref
from raykueue.model.queues import Booked, QuotaSpec
from raykueue.model.workloads import Charge

RAY_KINDS = frozenset({"RayJob", "RayCluster", "RayService"})


@dataclass(slots=True, eq=False)
class Hold:
    """One maximal revision interval in which a Workload holds quota. A re-admission is a new hold."""

    ref: Ref
    n: int
    """The n-th hold of this Workload, from 1."""
    job: str
    """UID of the job; empty if the Workload names none."""
    charge: Charge
    begin: Moment
    workload: Object
    """As last seen."""
    end: Moment | None = None
    gone: bool = False
    """It ended because the Workload was removed."""
    before_journal: bool = False
    """It was there at the first LIST: nobody saw it begin."""
    most: Mapping[str, int] = field(default_factory=dict)
    """The most it was ever charged, per resource."""

    @property
    def payer(self) -> str:
        """`<Workload UID>#<n>`."""
        return f"{self.ref.uid}#{self.n}"

    def __str__(self) -> str:
        return f"{self.ref}" + (f" (hold {self.n})" if self.n > 1 else "")


@dataclass(slots=True, eq=False)
class Job:
    """What is queued: a RayJob, or a RayCluster or RayService that no managed job owns."""

    ref: Ref
    managed: bool = False
    """Kueue manages it. Sticky: removing the label does not unmanage a job."""
    skipped: bool = False
    """Labelled, but left alone by Kueue by design: no rule judges its pods."""
    had_hold: bool = False
    latest: Hold | None = None
    """Its last hold, open or not."""
    holds: list[Hold] = field(default_factory=list)
    """The open ones, oldest first: at most one, two while an elastic slice is replaced."""
    pods: set[str] = field(default_factory=set)
    """UIDs of the pods that exist."""
    object: Object | None = None
    """As last seen; None if it was never seen, or is gone."""
    ttl: float = 0.0
    """ttlSecondsAfterFinished."""
    grace: int = 0
    """Largest grace of its pods so far, in seconds."""

    @property
    def judged(self) -> bool:
        """Rules about pods apply."""
        return self.managed and not self.skipped and self.ref.kind in RAY_KINDS


class PodState(NamedTuple):
    """What matters about a pod at one revision."""

    payer: Hold | None
    demand: Mapping[str, int]
    """Effective requests and `pods: 1`; empty if it has ended or is gated."""
    live: bool
    gated: bool
    bound: bool
    terminating: bool
    running: bool
    grace: int
    """Seconds."""


@dataclass(slots=True, eq=False)
class Pod:
    """One pod of a Ray job."""

    ref: Ref
    job: Job
    pod_set: str
    """Name of its PodSet; `""` if it is none of those that are known."""
    cleanup: bool
    """A Redis clean-up pod: held against the head."""
    born: Moment
    containers: frozenset[str]
    state: PodState
    object: Object
    by_label: bool = False
    """Its owner was never seen: attributed by labels."""
    before_journal: bool = False
    """It was there at the first LIST: nobody saw it begin."""
    never_charged: bool = False
    """Born without a payer, for a job that never had a hold."""
    orphan: bool = False
    """Its controller was gone, or going, before it was born."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A ClusterQueue at one revision."""

    ref: Ref
    spec: QuotaSpec
    booked: Booked | None
    """None: unknown, because there is no status yet or it is being deleted."""
