"""Valid runs, generated: jobs on one queue from submission to deletion, with every write that both products make."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from hypothesis import strategies as st

from raykueue.model.events import Header, Record
from tests.audit.journals import EPOCH, NAMESPACE, PAIR, Job, Journal, Pod

Ending: TypeAlias = Literal["succeeds", "is evicted first", "is deleted"]
CPU = 100
LABELS = {"pool": "batch"}


@dataclass(frozen=True)
class Plan:
    """One job: when it comes, how long it runs, what becomes of it."""

    start: float
    runs: float
    workers: int
    ending: Ending


plans = st.lists(
    st.builds(
        Plan,
        start=st.integers(0, 80).map(lambda tenth: tenth / 10),
        runs=st.integers(5, 60).map(lambda tenth: tenth / 10),
        workers=st.integers(1, 3),
        ending=st.sampled_from(["succeeds", "is evicted first", "is deleted"]),
    ),
    min_size=1,
    max_size=3,
)


def life(planned: list[Plan], cpu: int = CPU) -> list[Record]:
    """The journal of these jobs, on a queue with so many CPUs, which must do for all of them at once."""
    return _Life(planned, cpu).records()


class _Life:
    def __init__(self, planned: list[Plan], cpu: int) -> None:
        self.j = Journal().at(0)
        self.j.node(**LABELS)
        self.j.flavor("default", None, **LABELS)
        self.queue = self.j.queue(cpu=cpu)
        self.j.emit(
            "LocalQueue",
            {
                "metadata": {"name": "lq", "namespace": NAMESPACE, "uid": "lq"},
                "spec": {"clusterQueue": self.queue.name},
            },
            "ADDED",
        )
        self.queue.books(0, 0)
        self.booked: dict[str, float] = {}
        self.due = False
        self.t = 0.0
        self.order = itertools.count()
        self.waiting: list[tuple[float, int, Callable[[], Any]]] = []
        for number, plan in enumerate(planned):
            self.after(1 + plan.start, self.submit, f"job{number}", plan)
        while self.waiting:
            self.t, _, act = heapq.heappop(self.waiting)
            self.j.at(self.t)
            act()

    def records(self) -> list[Record]:
        return [Header(EPOCH, pair=PAIR), *self.j.records]

    def after(self, seconds: float, act: Callable[..., Any], *arguments: Any) -> None:
        action: Callable[[], Any] = partial(act, *arguments)
        heapq.heappush(self.waiting, (self.t + seconds, next(self.order), action))

    def submit(self, name: str, plan: Plan) -> None:
        job = self.j.job(name, self.queue, counts={"workers": plan.workers}, shutdownAfterJobFinishes=True)
        self.after(0.1, job.state, "Suspended")
        self.after(0.2, job.workload.write)
        self.after(0.4, self.admit, job, plan, plan.ending == "is evicted first")

    def admit(self, job: Job, plan: Plan, evicted: bool) -> None:
        job.workload.admit()
        self.book(job, sum(job.pods[p]["cpu"] * n for p, n in job.counts.items()))
        self.after(0.1, job.suspend, False)
        self.after(0.2, job.state, "Initializing")
        self.after(0.3, job.start_cluster)
        pods: list[Pod] = []
        for delay, pod_set, suffix in _pods(job):
            self.after(delay, self.birth, job, pods, pod_set, suffix)
        self.after(1.2, job.state, "Running", "RUNNING")
        end = {True: self.evict, False: self.delete if plan.ending == "is deleted" else self.succeed}[evicted]
        self.after(1.5 + plan.runs, end, job, plan, pods)

    def birth(self, job: Job, pods: list[Pod], pod_set: str, suffix: str) -> None:
        pod = job.pod(pod_set, suffix, node="", nodeSelector=LABELS)
        pods.append(pod)
        self.after(0.1, pod.bind)

    def evict(self, job: Job, plan: Plan, pods: list[Pod]) -> None:
        job.workload.evict()
        self.after(0.1, job.suspend, True)
        self.after(0.2, job.state, "Suspending")
        self.end_pods(job, pods, 0.3)
        self.after(1.2, job.state, "Suspended")
        self.after(1.3, job.workload.release)
        self.after(1.3, self.book, job, 0)
        self.after(5, self.admit, job, plan, False)

    def succeed(self, job: Job, plan: Plan, pods: list[Pod]) -> None:
        for pod in pods:
            if "submitter" in str(pod.body["metadata"]["name"]):
                pod.end()
        self.after(0.1, job.state, "Complete", "SUCCEEDED")
        self.after(0.2, job.workload.finish)
        self.after(0.2, self.book, job, 0)
        self.end_pods(job, pods, 0.6, submitter=False)
        self.after(4, self.delete, job, plan, pods)

    def delete(self, job: Job, _: Plan, pods: list[Pod]) -> None:
        finished = job.name not in self.booked
        job.terminate()
        self.end_pods(job, pods, 0.1)
        self.after(0.5, job.gone)
        if not finished:
            self.after(0.2, job.workload.finish, "OwnerNotFound")
            self.after(0.2, self.book, job, 0)
        self.after(0.8, job.workload.gone)

    def end_pods(self, job: Job, pods: list[Pod], delay: float, *, submitter: bool = True) -> None:
        """The cluster goes, and the submitter Job, then their pods."""
        ending = [pod for pod in pods if submitter or "submitter" not in str(pod.body["metadata"]["name"])]
        if job.cluster is not None:
            self.after(delay, job.stop_cluster)
        if submitter and job.submitter is not None:
            self.after(delay, self.j.emit, "Job", job.submitter, "DELETED")
            job.submitter = None
        for pod in ending:
            pods.remove(pod)
            self.after(delay + 0.1, pod.terminate)
            self.after(delay + 0.2, pod.gone)

    def book(self, job: Job, cpu: float) -> None:
        """Kueue publishes within a second after a change, and then all that has changed since."""
        self.booked[job.name] = cpu
        if not cpu:
            del self.booked[job.name]
        if not self.due:
            self.due = True
            self.after(0.9, self.publish)

    def publish(self) -> None:
        self.due = False
        used, count = sum(self.booked.values()), len(self.booked)
        self.queue.books(used, used, n=(count, count))


def _pods(job: Job) -> Iterator[tuple[float, str, str]]:
    """(delay, PodSet, suffix): the names of a second start are new ones."""
    start = job.clusters
    yield 0.4, "head", f"{start}-1"
    for number in range(1, job.counts["workers"] + 1):
        yield 0.5, "workers", f"{start}-{number}"
    yield 0.9, "submitter", f"{start}-1"
