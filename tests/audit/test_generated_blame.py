"""Over generated runs full of faults: every uncharged core-second is in one finding, no overlap without survivors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from raykueue.audit.ledger import Ledger
from raykueue.audit.scope import Scope
from raykueue.model.events import Event
from raykueue.model.findings import Finding
from tests.audit.journals import EPOCH, NAMESPACE, Job, Journal, Pod, Queue

UNPAID = ("pods-covered", "no-survivors")


steps = st.tuples(st.integers(0, 9), st.integers(0, 7), st.integers(0, 30))
scripts = st.lists(steps, max_size=40)


class Run:
    """Two queues of one cohort; jobs are admitted only where quota is free, everything else goes wrong at will."""

    def __init__(self, script: list[tuple[int, int, int]]) -> None:
        self.j = Journal().at(0)
        self.quota = {"a": 3.0, "b": 2.0}
        self.queues = {name: self.j.queue(name, cpu=cpu, cohort="co") for name, cpu in self.quota.items()}
        self.jobs: list[Job] = []
        self.held: dict[str, Job] = {}
        self.pods: list[Pod] = []
        self.started: set[str] = set()
        self.t = 0.0
        for which in range(3):
            self.make(which)
        for what, which, pause in script:
            self.step(what, which)
            self.t += pause / 10
            self.j.at(self.t)

    def make(self, which: int) -> None:
        queue: Queue = self.queues["ab"[which % 2]]
        self.jobs.append(self.j.job(f"job{len(self.j.records)}", queue, counts={"workers": which % 3 + 1}))

    def step(self, what: int, which: int) -> None:
        held = list(self.held.values())
        if what == 0 or not self.jobs:
            self.make(which)
        elif what in (1, 2):
            self.admit()
        elif what in (3, 4) and held:
            job = held[which % len(held)]
            if job.name not in self.started:
                self.started.add(job.name)
                self.pods += [self.add(job, "head"), self.add(job, "workers"), self.add(job, "submitter")]
        elif what in (5, 6) and held:
            job = held[which % len(held)]
            del self.held[job.name]
            self.started.discard(job.name)
            if what == 5:
                job.workload.evict()
                job.state("Suspended")
                job.workload.release()
            else:
                self.jobs.remove(job)
                job.state("Complete", "SUCCEEDED")
                job.workload.finish()
        elif what == 7 and self.pods:
            first = self.pods[which % len(self.pods)]
            for pod in [p for p in self.pods if p is first or (which > 3 and p.job is first.job)]:
                self.pods.remove(pod)
                if which % 2:
                    pod.terminate()
                else:
                    pod.end()
                self.t += 0.05
                self.j.at(self.t)
                pod.gone()
        elif what == 8:
            job = self.jobs[which % len(self.jobs)]
            self.pods.append(self.add(job, ("head", "workers", "submitter")[which % 3], cpu=0.25 * which))
        elif what == 9:
            self.quota["a"] = 0.5 + which / 2
            self.queues["a"].edit(default={"cpu": self.quota["a"]})

    def add(self, job: Job, pod_set: str, cpu: float | None = None) -> Pod:
        return job.pod(pod_set, str(self.j.uids), cpu=cpu, node="" if self.j.uids % 3 else "node-1")

    def admit(self) -> None:
        """The first that fits, as Kueue does it: a cohort without limits has the sum of its queues."""
        used = sum(cost(job) for job in self.held.values())
        for job in self.jobs:
            if job.name not in self.held and used + cost(job) <= sum(self.quota.values()):
                job.workload.admit()
                self.held[job.name] = job
                return

    def ledger(self) -> Ledger:
        return self.j.ledger(self.t + 5)


def cost(job: Job) -> float:
    return float(sum(job.pods[p]["cpu"] * count for p, count in job.counts.items()))


@dataclass
class Pay:
    """A pod as brute force sees it."""

    cpu: int
    job: str
    pod_set: str
    payer: tuple[str, int] | None
    never: bool


@dataclass
class Brute:
    """All of it worked out again at every event, from raw objects: step functions as (from, to, value)."""

    events: list[Event]
    end: int
    uncharged: list[tuple[int, int, int]] = field(default_factory=list)
    survivors: list[tuple[int, int, int]] = field(default_factory=list)
    over: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        owners: dict[str, str] = {}
        holds: dict[str, tuple[int, Mapping[str, int]]] = {}
        count: dict[str, int] = defaultdict(int)
        jobs: dict[str, str] = {}
        pods: dict[str, Pay] = {}
        quota: dict[str, int] = {}
        times = [e.arrived for e in self.events[1:]] + [self.end]
        for event, until in zip(self.events, times, strict=True):
            obj, uid = event.object, event.object["metadata"]["uid"]
            for one in obj["metadata"].get("ownerReferences", ()):
                owners[uid] = one["uid"]
            if event.kind == "ClusterQueue":
                flavor = obj["spec"]["resourceGroups"][0]["flavors"][0]
                quota[uid] = milli(flavor["resources"][0]["nominalQuota"])
            elif event.kind == "Workload":
                charge = charged(obj)
                if charge is None:
                    holds.pop(uid, None)
                elif uid not in holds:
                    count[uid] += 1
                    holds[uid] = (count[uid], charge)
                    jobs[owners[uid]] = uid
            elif event.kind == "Pod":
                self.pod(event, pods, owners, holds, count, jobs)
            self.measure(event.arrived, until, pods, holds, sum(quota.values()))

    def pod(
        self,
        event: Event,
        pods: dict[str, Pay],
        owners: Mapping[str, str],
        holds: Mapping[str, tuple[int, Mapping[str, int]]],
        count: Mapping[str, int],
        jobs: Mapping[str, str],
    ) -> None:
        obj, uid = event.object, event.object["metadata"]["uid"]
        if event.type == "DELETED" or obj["status"]["phase"] in ("Succeeded", "Failed"):
            pods.pop(uid, None)
        elif event.type == "ADDED":
            job = owners[owners[uid]]
            workload = jobs.get(job, "")
            payer = (workload, count[workload]) if workload in holds else None
            cpu = sum(milli(c["resources"]["requests"]["cpu"]) for c in obj["spec"]["containers"])
            pod_set = obj["metadata"]["labels"]["kueue.x-k8s.io/podset"]
            pods[uid] = Pay(cpu, job, pod_set, payer, never=not workload)

    def measure(
        self,
        start: int,
        until: int,
        pods: Mapping[str, Pay],
        holds: Mapping[str, tuple[int, Mapping[str, int]]],
        quota: int,
    ) -> None:
        asked: dict[tuple[str, str], int] = defaultdict(int)
        never = survivors = 0
        for pod in pods.values():
            if pod.payer is not None and holds.get(pod.payer[0], (0, {}))[0] == pod.payer[1]:
                asked[pod.payer[0], pod.pod_set] += pod.cpu
            elif pod.never:
                never += pod.cpu
            else:
                survivors += pod.cpu
        excess = sum(max(0, value - holds[w][1].get(pod_set, 0)) for (w, pod_set), value in asked.items())
        self.uncharged.append((start, until, never + excess + survivors))
        self.survivors.append((start, until, survivors))
        self.over.append((start, until, max(0, sum(asked.values()) + survivors - quota)))


def milli(quantity: str) -> int:
    assert quantity.endswith("m")
    return int(quantity[:-1])


def charged(workload: Mapping[str, Any]) -> dict[str, int] | None:
    said = {c["type"]: c["status"] for c in workload["status"]["conditions"]}
    admission = workload["status"].get("admission")
    if said.get("QuotaReserved") != "True" or said.get("Finished") == "True" or not admission:
        return None
    return {one["name"]: milli(one["resourceUsage"]["cpu"]) for one in admission["podSetAssignments"]}


def integral(steps: list[tuple[int, int, int]], begin: int = 0, end: int = 2**63) -> int:
    return sum(max(0, min(b, end) - max(a, begin)) * value for a, b, value in steps)


def peak(steps: list[tuple[int, int, int]], begin: int, end: int) -> int:
    return max((value for a, b, value in steps if a <= end and b >= begin), default=0)


def brute(run: Run) -> Brute:
    events = sorted((r for r in run.j.records if isinstance(r, Event)), key=lambda e: e.rev)
    return Brute(events, EPOCH + round((run.t + 5) * 1e9))


def cpu_ns(found: list[Finding]) -> int:
    return round(sum(f.resource_seconds.get("cpu", 0.0) for f in found) * 1e9)


@given(scripts)
def test_every_uncharged_core_second_is_in_exactly_one_finding(script: list[tuple[int, int, int]]) -> None:
    run = Run(script)
    raised = [f for f in run.ledger().unscoped([]) if f.rule in UNPAID and not f.part_of]
    assert abs(cpu_ns(raised) - integral(brute(run).uncharged)) <= 1000 * len(raised)


@given(scripts)
def test_nothing_overlaps_without_survivors_and_without_use_beyond_the_quota(
    script: list[tuple[int, int, int]],
) -> None:
    run = Run(script)
    truth = brute(run)
    for found in [f for f in run.ledger().unscoped([]) if f.rule == "no-overlap"]:
        begin, end = found.begin.t, found.end.t if found.end else truth.end
        for limit in (truth.survivors, truth.over):
            assert found.peak["cpu"] <= peak(limit, begin, end)
            assert cpu_ns([found]) <= integral(limit, begin, end) + 1000


@given(scripts)
def test_all_use_beyond_the_quota_is_explained(script: list[tuple[int, int, int]]) -> None:
    run = Run(script)
    found = run.ledger().unscoped([])
    assert [f.text for f in found if f.cause == "unexplained"] == []
    truth = brute(run)
    for one in found:
        end = one.end.t if one.end else truth.end
        assert one.over_quota.get("cpu", 0) <= peak(truth.over, one.begin.t, end)
    paid = [f for f in found if f.rule == "quota-respected" and f.klass == "hazard"]
    assert cpu_ns(paid) <= integral(truth.over) + 1000 * len(paid)


@given(scripts)
def test_a_hand_over_with_a_lead_overlaps_with_nothing(script: list[tuple[int, int, int]]) -> None:
    for one in Run(script).ledger().handovers(Scope(frozenset({NAMESPACE}))):
        assert one.released <= one.gained
        assert all(value > 0 for value in one.debt.values())
        assert one.bound_ms <= one.overlap_ms
        assert one.running_ms <= one.overlap_ms
        if one.lead_ms is not None and one.lead_ms >= 0:
            assert (one.overlap_ms, one.peak) == (0, {})
