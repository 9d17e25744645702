"""Faults to plant into a valid journal, each with its oracle: which rule must find it, by which cause, from what size.

Above its threshold exactly that rule finds it, and once; below it nobody says anything. A fault without threshold is
found at any size. A new rule gets a row in FAULTS, what it must not mind a row in `harmless.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from raykueue.audit.thresholds import Thresholds
from raykueue.model import rayjobs, requests, views
from raykueue.model.quantities import amounts
from tests.audit import spots
from tests.audit.harmless import placed_by_labels
from tests.audit.spots import Spot, Spots, descendants, goes
from tests.audit.stories import NS, Json, Script, indexes

LIMITS = Thresholds()


@dataclass(frozen=True)
class Fault:
    """One row: what is planted where, and what must be found."""

    name: str
    rule: str
    cause: str
    spots: Spots
    plant: Callable[[Spot, float], Script]
    threshold: Callable[[Spot], float] | None = None
    """Of its size; None: any size is too much."""
    unit: Literal["seconds", "millicores", ""] = "seconds"
    """What about the finding is as large as the fault: how long it lasts, its peak, or nothing."""


def an_extra_pod(spot: Spot, seconds: float) -> Script:
    """One more pod of a PodSet."""
    uid = min(spot.hold.pods, key=lambda one: (spot.hold.pods[one] != "head", one))
    return spot.script.meanwhile(spot.index, seconds, "Pod", _twin(spot.script.state("Pod", uid, spot.index)))


def a_pod_that_grows(spot: Spot, millicores: float) -> Script:
    """A running pod asks more than its share, for five seconds."""
    pod = spot.script.state("Pod", min(spot.hold.pods), spot.index)
    bigger = copy.deepcopy(pod)
    asked = bigger["spec"]["containers"][0]["resources"]["requests"]
    asked["cpu"] = f"{amounts(asked)['cpu'] + round(millicores)}m"
    return spot.script.meanwhile(spot.index, 5, "Pod", bigger, pod)


def a_lingering_pod(spot: Spot, seconds: float) -> Script:
    """The pod that goes last does so only that long after the end of its hold."""
    uid = max(spot.hold.pods, key=lambda one: (goes(spot.script, one), one))
    end = spot.script.lines[spot.index].t + round(seconds * NS)
    return spot.script.move(lambda i, line: i > spot.index and line.like("Pod", uid), end)


def a_late_status(spot: Spot, seconds: float) -> Script:
    """The last status is written that long after the last change."""
    changed = spot.script.lines[spots.hand_changes(spot.script)[-1]].t
    return spot.script.move(lambda i, _: i == spot.index, changed + round(seconds * NS))


def a_wrong_status(spot: Spot, seconds: float) -> Script:
    """The status, which was right for ten seconds and then is so again, says one CPU more."""
    uid = views.uid(next(line.obj for line in spot.script.lines if line.like("ClusterQueue")))
    right = spot.script.state("ClusterQueue", uid, spot.index)
    wrong = copy.deepcopy(right)
    for section in ("flavorsUsage", "flavorsReservation"):
        for line in wrong["status"][section][0]["resources"]:
            if line["name"] == "cpu":
                line["total"] = f"{amounts({'cpu': line['total']})['cpu'] + 1000}m"
    rested = spot.script.meanwhile(spot.index, 10, "ClusterQueue", right, right)
    wronged = rested.meanwhile(spot.index + 2, seconds, "ClusterQueue", wrong, right)
    return wronged.pause(spot.index + 4, 10)


def too_small_a_quota(spot: Spot, millicores: float) -> Script:
    """There never was as much as the hold is charged."""
    charged = sum(value for (_, resource), value in spot.hold.hold.charge.totals.items() if resource == "cpu")

    def shrink(obj: Json) -> None:
        for group in obj["spec"]["resourceGroups"]:
            for resource in (r for flavor in group["flavors"] for r in flavor["resources"]):
                if resource["name"] == "cpu":
                    resource["nominalQuota"] = f"{charged - round(millicores)}m"

    return spot.script.rewrite(lambda _, line: line.like("ClusterQueue"), shrink)


def another_workload(spot: Spot, seconds: float) -> Script:
    """The running job has a second one, for at most the time that its newest one may be without quota."""
    twin = _twin(_pending(spot.workload))
    return spot.script.meanwhile(spot.index, min(seconds, LIMITS.resuspend), "Workload", twin)


def no_workload(spot: Spot, seconds: float) -> Script:
    """The job waits that long for its first one."""
    since = spot.script.lines[next(indexes(spot.script, "RayJob"))].t
    return spot.script.pause(spot.index, seconds - (spot.script.lines[spot.index].t - since) / NS)


def a_childs_workload(spot: Spot, seconds: float) -> Script:
    """The job's RayCluster is queued as if it were a job of its own."""
    cluster = next(line.obj for line in reversed(spot.script.lines[: spot.index]) if line.like("RayCluster"))
    child = _twin(_pending(spot.workload))
    owner = {"kind": "RayCluster", "name": views.name(cluster), "uid": views.uid(cluster), "controller": True}
    child["metadata"] |= {"ownerReferences": [owner], "labels": {}}
    return spot.script.meanwhile(spot.index, seconds, "Workload", child)


def suspended_with_pods(spot: Spot, seconds: float) -> Script:
    """The job says it is suspended, and keeps its pods and its quota."""
    return _job_meanwhile(spot, seconds, lambda job: job["status"].update(jobDeploymentStatus="Suspended"))


def unheeded(spot: Spot, seconds: float) -> Script:
    """Somebody suspends the running job, and KubeRay does nothing."""
    return _job_meanwhile(spot, seconds, lambda job: job["spec"].update(suspend=True))


def started_unpaid(spot: Spot, seconds: float) -> Script:
    """Somebody unsuspends the job that waits for quota, and Kueue doesn't mind."""
    after = Spot(spot.script, spot.index + 1, spot.span)
    return _job_meanwhile(after, seconds, lambda job: job["spec"].update(suspend=False))


def unfinished_again(spot: Spot, seconds: float) -> Script:
    """A finished Workload is finished no longer."""
    workload = spot.workload
    return spot.script.meanwhile(spot.index, seconds, "Workload", _pending(spot.workload), workload)


def a_restarted_job(spot: Spot, seconds: float) -> Script:
    """A job that was Complete runs again, for at most the time that it may run unpaid."""
    running = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"}
    return _job_meanwhile(spot, min(seconds, LIMITS.resuspend), lambda job: job["status"].update(running))


def a_lost_selector(spot: Spot, _: float) -> Script:
    """All flavors have labels, and all pods but one carry them."""
    uid = min(spot.hold.pods)
    placed = placed_by_labels(spot)
    return placed.rewrite(lambda _, line: line.like("Pod", uid), lambda obj: obj["spec"].update(nodeSelector={}))


def something_left(spot: Spot, seconds: float) -> Script:
    """Of a deleted job one object stays."""
    stays = max(descendants(spot.script, spot.index))
    gone = spot.script.lines[spot.index].t
    return spot.script.move(lambda i, _: i == stays, gone + round(seconds * NS))


def no_pods(spot: Spot, seconds: float) -> Script:
    """Quota was given, the job was started, and from then on nobody makes a pod."""
    started = next(
        i
        for i in indexes(spot.script, "RayJob")
        if i > spot.index and not rayjobs.wants_suspension(spot.script.lines[i].obj)
    )
    status = next(i for i in indexes(spot.script, "ClusterQueue") if i > spot.index)
    if status > started:  # it says that quota was given: it must not wait
        script = spot.script.move(lambda i, _: i == status, spot.script.lines[started].t)
    else:
        script = spot.script
    first = next(indexes(script, "Pod"))
    return script.pause(first, seconds - (script.lines[first].t - spot.script.lines[started].t) / NS)


def _job_meanwhile(spot: Spot, seconds: float, change: Callable[[Json], object]) -> Script:
    job = spot.job
    during = copy.deepcopy(job)
    change(during)
    return spot.script.meanwhile(spot.index, seconds, "RayJob", during, job)


def _twin(obj: Json) -> Json:
    """The same object under another name, with another UID."""
    twin = copy.deepcopy(obj)
    twin["metadata"]["name"] += "-twin"
    twin["metadata"]["uid"] += "-twin"
    return twin


def _pending(workload: Json) -> Json:
    return {**workload, "status": {"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "Pending"}]}}


def _grace(spot: Spot) -> float:
    return max(requests.grace_seconds(spot.script.lines[i].obj) for i in indexes(spot.script, "Pod"))


def _ttl(spot: Spot) -> float:
    return float(views.spec(spot.job).get("ttlSecondsAfterFinished") or 0)


# What the pair may do in ordinary operation counts as below: raykueue/allowances.toml, with pods that go at once.
FAULTS = (
    Fault("extra pod", "pods-covered", "extra-pods", spots.calm, an_extra_pod, lambda _: LIMITS.gc),
    Fault("grown pod", "pods-covered", "under-count", spots.calm, a_pod_that_grows, lambda _: 0, "millicores"),
    Fault(
        "lingering pod",
        "no-survivors",
        "finished/clean-up",
        spots.ended("Succeeded"),
        a_lingering_pod,
        lambda spot: _ttl(spot) + LIMITS.kuberay + 1 + LIMITS.gc,
    ),
    Fault(
        "orphaned pod",
        "no-survivors",
        "owner-deleted",
        spots.ended("OwnerNotFound"),
        a_lingering_pod,
        lambda _: 5 + LIMITS.gc,
    ),
    Fault(
        "late status",
        "books-match",
        "*-booked",
        spots.published,
        a_late_status,
        lambda _: LIMITS.settle + LIMITS.persist,
        "",
    ),
    Fault("wrong status", "books-match", "over-booked", spots.calm, a_wrong_status, lambda _: LIMITS.persist),
    Fault(
        "small quota",
        "quota-respected",
        "over-admitted",
        spots.alone_once,
        too_small_a_quota,
        lambda _: 0,
        "millicores",
    ),
    Fault("second Workload", "one-workload", "two-workloads", spots.calm, another_workload, None, ""),
    Fault("no Workload", "one-workload", "no-workload", spots.alone_queued, no_workload, lambda _: LIMITS.workload, ""),
    Fault("child's Workload", "one-workload", "child-workload", spots.calm, a_childs_workload),
    Fault(
        "suspended with pods",
        "suspended-means-empty",
        "pods-still-paid",
        spots.calm,
        suspended_with_pods,
        lambda _: LIMITS.handback,
    ),
    Fault(
        "unheeded suspension",
        "suspended-means-empty",
        "not-suspended",
        spots.calm,
        unheeded,
        lambda _: LIMITS.heed,
    ),
    Fault(
        "started unpaid",
        "suspended-means-empty",
        "not-admitted",
        spots.alone_queued,
        started_unpaid,
        lambda _: LIMITS.resuspend,
    ),
    Fault("unfinished again", "finished-stays-finished", "unfinished", spots.finished, unfinished_again),
    Fault("restarted job", "finished-stays-finished", "job-restarted", spots.finished, a_restarted_job, None, ""),
    Fault("lost selector", "placed-as-assigned", "selector-missing", spots.calm, a_lost_selector, None, ""),
    Fault(
        "something left",
        "nothing-left",
        "left-behind",
        spots.deleted,
        something_left,
        lambda spot: LIMITS.delete + _grace(spot),
        "",
    ),
    Fault("no pods", "released-in-time", "never-a-pod", spots.alone, no_pods, lambda _: LIMITS.idle, ""),
)
