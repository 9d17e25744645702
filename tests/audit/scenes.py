"""Scenes of preemption: ClusterQueues with policies, jobs with priorities that wait, hold and are preempted.

scene = Scene()
q = scene.queue(cpu=3)
scene.holds("low", q, 3, priority=1)
scene.waits("high", q, 3, priority=9)
scene.preempt("high", "low")
assert scene.only().verdict == "right"
"""

from __future__ import annotations

import datetime
from typing import Any

from raykueue.audit.preemption import Decision, decisions
from raykueue.model.events import Header
from tests.audit.journals import EPOCH, NAMESPACE, Job, Journal, Queue


class Scene:
    """Jobs of one head pod each, by name; a second passes between any two things."""

    def __init__(self, version: str = "v1beta2") -> None:
        self.j = Journal(version).at(0)
        self.t = 0.0
        self.jobs: dict[str, Job] = {}

    def tick(self, seconds: float = 1.0) -> None:
        self.t += seconds
        self.j.at(self.t)

    def stamp(self) -> str:
        now = datetime.datetime.fromtimestamp(self.j.now // 10**9, datetime.UTC)
        return now.isoformat().replace("+00:00", "Z")

    def queue(self, name: str = "q", cpu: Any = 10, within: str = "LowerPriority", **more: Any) -> Queue:
        rules = {"withinClusterQueue": within, "reclaimWithinCohort": more.pop("reclaim", "Never")}
        rules |= more.pop("rules", {})
        spec = more.pop("spec", {})
        queue = self.j.queue(name, cpu=cpu, **more)
        queue.body["spec"] |= {"preemption": rules, **spec}
        self.j.emit("ClusterQueue", queue.body)
        local = {"metadata": {"name": f"in-{name}", "namespace": NAMESPACE, "uid": f"lq-{name}"}}
        self.j.emit("LocalQueue", {**local, "spec": {"clusterQueue": name}}, "ADDED")
        return queue

    def waits(self, name: str, queue: Queue, cpu: float, priority: int) -> Job:
        self.tick()
        job = self.jobs[name] = self.j.job(name, queue, pods={"head": cpu})
        body = job.workload.body
        body["metadata"]["creationTimestamp"] = self.stamp()
        body["spec"] |= {"priority": priority, "queueName": f"in-{queue.name}"}
        requests = {"cpu": f"{round(cpu * 1000)}m"}
        body["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": requests}
        job.workload.write()
        return job

    def holds(self, name: str, queue: Queue, cpu: float, priority: int) -> Job:
        job = self.waits(name, queue, cpu, priority)
        self.tick()
        self.admit(name)
        return job

    def admit(self, name: str) -> None:
        self.jobs[name].workload.admit()
        self.jobs[name].workload.condition("QuotaReserved", True, time=self.stamp())
        self.jobs[name].workload.write()

    def preempt(self, by: str, *victims: str, reason: str = "InClusterQueue") -> None:
        uid = self.jobs[by].workload.uid if by in self.jobs else by
        for victim in victims:
            workload = self.jobs[victim].workload
            message = f"Preempted to accommodate a workload (UID: {uid}, JobUID: x) due to prioritization"
            workload.condition("Evicted", True, "Preempted", message=message, time=self.stamp())
            workload.condition("Preempted", True, reason, message=message, time=self.stamp())
            workload.write()

    def release(self, *victims: str) -> None:
        for victim in victims:
            self.jobs[victim].workload.release()

    def decisions(self, cycle: float = 2.0) -> list[Decision]:
        return decisions([Header(EPOCH), *self.j.records], cycle=cycle)

    def preemptions(self) -> list[Decision]:
        return [d for d in self.decisions() if d.kind == "preemption"]

    def only(self) -> Decision:
        (found,) = self.preemptions()
        return found


def cohort(scene: Scene, reclaim: str = "Any", **more: Any) -> tuple[Queue, Queue]:
    owner = scene.queue("owner", 4, within="LowerPriority", reclaim=reclaim, cohort="all", **more)
    return owner, scene.queue("borrower", 4, cohort="all")
