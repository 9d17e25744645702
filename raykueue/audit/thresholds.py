"""Every time the rules wait or tolerate, in one place, with its reason. Seconds, as people write them.

The values a run used are in its journal's header, so that a replay judges by the same ones.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NS = 1_000_000_000


def ns(seconds: float) -> int:
    """Seconds as nanoseconds, the unit of every time in a journal."""
    return round(seconds * _NS)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the rules tolerate, in seconds."""

    settle: float = 3.0
    """Kueue recomputes a ClusterQueue's status 1 s after the first unseen change, then writes, conflicts, retries
    (kueue pkg/controller/core/clusterqueue_controller.go:485, pkg/constants/constants.go:32-36@v0.19.2)."""
    ahead: float = 1.0
    """The scheduler books usage before its write to the API (pkg/scheduler/scheduler.go:975-1055@v0.19.2)."""
    persist: float = 2.5
    """Longest stay outside the band on a healthy pair: 0 on an idle machine, 1.85 s on a saturated one; a constant
    error of one unit stays for at least 7 s once it is quiet."""
    gc: float = 5.0
    """Garbage collection of a vanished owner's pods, by a collector that is synced."""
    kuberay: float = 3.0
    """KubeRay's requeue in every state (ray-operator/controllers/ray/rayjob_controller.go:39@v1.6.2)."""
    suspend: float = 10.0
    """Kueue's patch, then KubeRay deletes cluster and submitter; its RayJob controller has one worker."""
    heed: float = 30.0
    """KubeRay heeds spec.suspend: no time is promised, and one worker does it for all RayJobs. Seen: 3.3 s with eight
    tests at once on two idle cores, 11.9 s with those cores overbooked ten times; a defect takes for ever."""
    workload: float = 10.0
    """A managed job gets its Workload."""
    resuspend: float = 5.0
    """Kueue flips back a job that somebody unsuspended."""
    handback: float = 5.0
    """Kueue gives the quota of a job back some milliseconds after KubeRay wrote that it is suspended."""
    delete: float = 10.0
    """Garbage collection and Kueue's finalizer, without the pods' grace."""
    redis: float = 330.0
    """The Redis clean-up Job of GCS fault tolerance may take 300 s."""
    restart: float = 10.0
    """After a controller is ready again its cache warms up."""
    born: float = 5.0
    """A pod made just as its job lost its quota may be a race; one that stays for longer is none."""
    quota_memory: float = 5.0
    """The scheduler decides on a snapshot: quota counts as the most generous spec of this long ago."""
    lag: float = 1.0
    """A controller decides on what its informers have told it, which trails the write."""
    idle: float = 60.0
    """Quota may be held without a pod for as long as pods may be on their way, or their end be reported."""
    stuck: float = 60.0
    """A RayJob whose deletion was asked for: KubeRay stops the job and drops its finalizer within a few requeues."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Thresholds:
        """Those of a journal's header; what it doesn't name keeps its default. Raises ValueError for bad ones."""
        names = {f.name for f in dataclasses.fields(cls)}
        given = {name: float(value) for name, value in settings.items() if name in names}
        negative = sorted(name for name, value in given.items() if value < 0)
        if negative:
            raise ValueError(f"thresholds are seconds, none below 0: {', '.join(negative)}; correct the settings")
        return cls(**given)

    def names(self) -> dict[str, float]:
        """As the bounds of allowances and known issues name them: T_gc, T_kr, …"""
        return {
            "settle": self.settle,
            "ahead": self.ahead,
            "persist": self.persist,
            "T_gc": self.gc,
            "T_kr": self.kuberay,
            "T_suspend": self.suspend,
            "T_wl": self.workload,
            "T_resuspend": self.resuspend,
            "T_delete": self.delete,
            "T_redis": self.redis,
            "T_restart": self.restart,
        }
