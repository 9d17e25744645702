"""Over generated runs: a valid one has no finding, a fault is found once, order of arrival doesn't matter."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from raykueue.audit.ledger import Ledger
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Barrier, Event
from raykueue.model.findings import Finding
from tests.audit.journals import EPOCH, PAIR, Job, Journal, Pod, Queue

CPU = 10
ABOUT = ("books-match", "pods-covered", "quota-respected")
"""The rules that the scripts obey and the faults break; the lives of jobs are only sketched."""


class Run:
    """Plays a script of small numbers as jobs that come and go on one queue, the way both products do it."""

    def __init__(self, script: list[tuple[int, int]]) -> None:
        self.j = Journal(about=ABOUT).at(0)
        self.queue: Queue = self.j.queue(cpu=CPU)
        self.t = 0.0
        self.waiting: list[Job] = []
        self.admitted: dict[str, Job] = {}
        self.pods: dict[str, list[Pod]] = {}
        self.made = 0
        self.publish()
        for what, pause in script:
            self.step(what)
            self.pass_time(pause / 10)
        self.pass_time(1)

    def pass_time(self, seconds: float) -> None:
        """Kueue publishes at most once a second, never later than a second after a change."""
        self.t += seconds
        self.j.at(self.t)
        self.publish()

    def used(self) -> float:
        return sum(cost(job) for job in self.admitted.values())

    def publish(self) -> None:
        self.queue.books(self.used(), self.used(), n=(len(self.admitted), len(self.admitted)))

    def step(self, what: int) -> None:
        if what == 0 or not (self.waiting or self.admitted):
            self.made += 1
            counts = {"workers": self.made % 3 + 1}
            self.waiting.append(self.j.job(f"job{self.made}", self.queue, counts=counts))
        elif what == 1 and self.waiting and self.used() + cost(self.waiting[0]) <= CPU:
            job = self.waiting.pop(0)
            job.workload.admit()
            self.admitted[job.name] = job
            self.pods[job.name] = job.start()
        elif what in (2, 3) and self.admitted:
            job = self.admitted.pop(next(iter(self.admitted)))
            for pod in self.pods[job.name]:
                if what == 2:
                    pod.end()
                else:
                    pod.terminate()
                    pod.gone()
            if what == 2:
                job.workload.finish()
            else:
                job.workload.evict()
                job.workload.release()
                job.stop_cluster()
                self.waiting.append(job)


def cost(job: Job) -> float:
    return float(sum(job.pods[p]["cpu"] * count for p, count in job.counts.items()))


scripts = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=25)


def end_of(run: Run) -> float:
    return run.t + 20


@given(scripts)
def test_a_valid_run_has_no_finding(script: list[tuple[int, int]]) -> None:
    run = Run(script)
    assert run.j.findings(end_of(run)) == []


def admitted_job(run: Run) -> Job:
    """A small job that fits, running beside whatever else there is."""
    if run.used() + 2.5 > CPU:
        while run.admitted:
            run.step(3)
        run.pass_time(1)
    job = run.j.job("faulty", run.queue)
    job.workload.admit()
    run.admitted[job.name] = job
    run.pods[job.name] = []
    job.suspend(False)
    run.pass_time(0.5)
    return job


@given(scripts, st.integers(1, 2000))
def test_a_pod_that_asks_too_much_is_found_exactly_once(script: list[tuple[int, int]], more: int) -> None:
    run = Run(script)
    admitted_job(run).pod("head", cpu=1 + more / 1000)
    (found,) = run.j.findings(end_of(run))
    assert (found.rule, found.cause, found.peak) == ("pods-covered", "under-count", {"cpu": more})


@given(scripts, st.integers(0, 1000))
def test_a_pod_that_asks_no_more_than_its_share_is_not_found(script: list[tuple[int, int]], less: int) -> None:
    run = Run(script)
    admitted_job(run).pod("head", cpu=1 - less / 1000)
    assert run.j.findings(end_of(run)) == []


def stale_for(run: Run, seconds: float) -> list[Finding]:
    """The status stays as it was for so long after the last change."""
    job = admitted_job(run)
    run.pass_time(10)
    del run.admitted[job.name]
    job.workload.finish()
    run.t += seconds
    run.j.at(run.t)
    run.publish()
    return run.j.findings(end_of(run))


@given(scripts, st.floats(5.6, 30))
def test_a_status_that_stays_wrong_too_long_is_found_exactly_once(script: list[tuple[int, int]], long: float) -> None:
    (found,) = stale_for(Run(script), long)
    assert (found.rule, found.cause, found.peak) == ("books-match", "over-booked", {"cpu": 2500})


@given(scripts, st.floats(0, 5.4))
def test_a_status_that_is_late_within_the_tolerance_is_not_found(script: list[tuple[int, int]], short: float) -> None:
    assert stale_for(Run(script), short) == []


@given(scripts, st.integers(0, 4000))
def test_an_admission_is_found_iff_it_is_beyond_the_quota(script: list[tuple[int, int]], beyond: int) -> None:
    run = Run(script)
    job = run.j.job("big", run.queue, pods={"head": CPU - run.used() + beyond / 1000})
    job.workload.admit()
    run.admitted[job.name] = job
    run.pass_time(1)
    found = run.j.findings(end_of(run))
    assert [(f.rule, f.peak) for f in found] == ([("quota-respected", {"cpu": beyond})] if beyond else [])


KINDS = ("RayJob", "RayCluster", "Workload", "Pod", "Job", "ClusterQueue")


def delayed(run: Run, delays: dict[str, list[int]]) -> list[Event]:
    """Each kind's stream is late by its own, changing amount of ms, but stays in order of revision."""
    last: dict[str, int] = {}
    events: list[Event] = []
    for record in run.j.records:
        assert isinstance(record, Event)
        steps = delays[record.kind]
        late = steps[record.rev % len(steps)] * 10**6
        arrived = max(record.arrived + late, last.get(record.kind, 0))
        last[record.kind] = arrived
        events.append(dataclasses.replace(record, arrived=arrived))
    return sorted(events, key=lambda e: e.arrived)


def told(findings: list[Finding]) -> list[tuple[str, str, str, int, int | None, str]]:
    return [(f.id, f.rule, f.cause, f.begin.rev, f.end.rev if f.end else None, str(f.peak)) for f in findings]


@given(
    scripts,
    st.fixed_dictionaries({kind: st.lists(st.integers(0, 900), min_size=1, max_size=5) for kind in KINDS}),
    st.sampled_from(["none", "pod", "quota"]),
    st.lists(st.integers(1, 40), max_size=4),
)
def test_order_of_arrival_and_barriers_do_not_matter(
    script: list[tuple[int, int]], delays: dict[str, list[int]], fault: str, barriers: list[int]
) -> None:
    run = Run(script)
    if fault == "pod":
        admitted_job(run).pod("head", cpu=2)
    elif fault == "quota":
        job = run.j.job("big", run.queue, pods={"head": CPU + 1})
        job.workload.admit()
        run.admitted[job.name] = job
        run.pass_time(1)
    events = delayed(run, delays)
    ledger = Ledger(Thresholds(), PAIR)
    for count, event in enumerate(events, 1):
        ledger.add(event)
        if count in barriers:
            proven = min((e.rev for e in events[count:]), default=run.j.rev + 1) - 1
            ledger.fold(Barrier(proven, event.arrived))
    ledger.fold(Barrier(run.j.rev, EPOCH + round(end_of(run) * 1e9)))
    findings = [f for f in ledger.unscoped([]) if f.rule in ABOUT]
    assert told(findings) == told(run.j.findings(end_of(run)))
