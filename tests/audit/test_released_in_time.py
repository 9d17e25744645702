from __future__ import annotations

import dataclasses

import pytest

from raykueue.audit.rules.released_in_time import ReleasedInTime
from raykueue.audit.scope import Scope
from raykueue.model.events import Event
from raykueue.model.findings import Finding
from tests.audit.journals import EPOCH, NAMESPACE, PAIR, Job, Journal

SCOPE = Scope(frozenset({NAMESPACE}), frozenset({"cq"}))


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param)


def idle(j: Journal, until: float) -> list[Finding]:
    return [f for f in j.findings(until) if f.rule == "released-in-time"]


def admitted(j: Journal, *, suspended: bool = False) -> Job:
    a = j.at(-1).job("a", j.queue())
    j.at(0)
    a.workload.admit()
    if not suspended:
        a.suspend(False)
    return a


def owed(j: Journal, until: float) -> list[tuple[str, float | None]]:
    ledger = j.ledger(until)
    found = [o for o in ledger.obligations(SCOPE) if o.rule == "released-in-time"]
    return [(o.text, None if o.until is None else (o.until - EPOCH) / 1e9) for o in found]


def test_f1_quota_of_a_job_that_failed_validation_is_found() -> None:
    old = Journal("v1beta1", {**PAIR, "kueue": "0.18.4"})
    a = admitted(old)
    old.at(1)
    a.state("ValidationFailed")
    (found,) = idle(old, until=30)
    assert (found.cause, found.klass, found.peak) == ("validation-failed", "hazard", {"cpu": 2500})
    assert found.begin.t == EPOCH
    assert found.end is None
    assert found.seconds == (30.0, 30.0)
    assert found.resource_seconds == {"cpu": 75000.0}
    assert found.payer == f"{a.workload.uid}#1"
    assert "held 2.5 CPU without any pod for 30000 ms, and still so: its job failed validation" in found.text


@pytest.mark.parametrize(
    ("kueue", "klass"),
    [
        ("0.18.4", "hazard"),
        ("0.18.5", "contract"),
        ("0.19.0", "hazard"),
        ("0.19.1", "contract"),
        ("0.19.2", "contract"),
    ],
)
def test_it_breaks_a_promise_where_kueue_says_that_it_gives_such_quota_back(kueue: str, klass: str) -> None:
    j = Journal(pair={**PAIR, "kueue": kueue})
    a = admitted(j)
    a.state("ValidationFailed")
    assert [f.klass for f in idle(j, until=30)] == [klass]


def test_f2_quota_that_stays_reserved_after_an_eviction_is_found(j: Journal) -> None:
    a = admitted(j)
    pods = a.start()
    j.at(5)
    a.workload.evict()
    for pod in pods:
        pod.gone()
    j.at(95)
    a.workload.release()
    (found,) = idle(j, until=100)
    assert (found.cause, found.klass) == ("evicted", "hazard")
    assert found.seconds == (90.0, 90.0)
    assert found.resource_seconds == {"cpu": 225000.0}


def test_f3_quota_of_a_running_job_that_never_had_a_pod_is_found(j: Journal) -> None:
    a = admitted(j)
    (found,) = idle(j, until=90)
    assert found.cause == "never-a-pod"
    assert found.seconds == (90.0, 90.0)
    j.at(100)
    a.pod("head")
    (found,) = idle(j, until=200)
    assert found.seconds == (100.0, 100.0)


def test_quota_of_a_suspended_job_whose_pods_are_gone_is_found(j: Journal) -> None:
    a = admitted(j)
    (head, *others) = a.start()
    j.at(5)
    a.suspend(True)
    for pod in others:
        pod.gone()
    j.at(6)
    a.state("Suspended")
    j.at(7)
    head.gone()
    (found,) = idle(j, until=20)
    assert found.cause == "suspended"
    assert found.begin.t == EPOCH + 7 * 10**9


def test_pods_that_have_ended_are_no_pods(j: Journal) -> None:
    a = admitted(j)
    for pod in a.start():
        pod.end("Failed")
    a.workload.evict()
    assert [f.cause for f in idle(j, until=61)] == ["evicted"]


def test_a_second_time_without_pods_is_a_second_finding(j: Journal) -> None:
    a = admitted(j)
    j.at(70)
    pod = a.pod("head")
    j.at(80)
    pod.gone()
    a.workload.evict()
    assert [(f.cause, f.seconds[0]) for f in idle(j, until=150)] == [("never-a-pod", 70.0), ("evicted", 70.0)]


def test_one_time_without_pods_is_one_finding_whatever_else_happens_meanwhile(j: Journal) -> None:
    a = admitted(j)
    j.at(65)
    a.state("ValidationFailed")
    a.workload.evict()
    (found,) = idle(j, until=300)
    assert (found.cause, found.seconds) == ("never-a-pod", (300.0, 300.0))


def test_idle_quota_follows_the_charge(j: Journal) -> None:
    a = j.at(0).job("a", j.queue(cpu=30), counts={"workers": 4})
    a.workload.admit()
    a.suspend(False)
    j.at(40)
    a.workload.scale("workers", 1)
    (found,) = idle(j, until=100)
    assert found.peak == {"cpu": 5500}
    assert found.resource_seconds == {"cpu": 40 * 5500.0 + 60 * 2500.0}


BOUNDS = [("validation-failed", 10.0), ("evicted", 60.0), ("never-a-pod", 60.0), ("suspended", 10.0)]


@pytest.mark.parametrize(("cause", "bound"), BOUNDS)
def test_it_is_silent_up_to_its_bound_and_fires_above_it(j: Journal, cause: str, bound: float) -> None:
    a = admitted(j, suspended=cause == "suspended")
    if cause == "validation-failed":
        a.state("ValidationFailed")
    elif cause == "evicted":
        a.pod("head").gone()
        a.workload.evict()
    elif cause == "suspended":
        a.state("Suspended")
    assert idle(j, until=bound) == []
    assert [f.cause for f in idle(j, until=bound + 0.001)] == [cause]
    ((text, until),) = owed(j, until=bound)
    assert until == bound
    assert "pays for no live pod" in text
    assert owed(j, until=bound + 0.001) == []


@pytest.mark.parametrize(("cause", "bound"), BOUNDS)
def test_quota_that_comes_back_at_the_bound_is_in_time(cause: str, bound: float) -> None:
    j = Journal()
    a = admitted(j, suspended=cause == "suspended")
    if cause == "validation-failed":
        a.state("ValidationFailed")
    elif cause == "evicted":
        a.pod("head").gone()
        a.workload.evict()
    j.at(bound)
    a.workload.release()
    assert idle(j, until=200) == []


@pytest.mark.parametrize("status", ["Complete", "Failed"])
def test_f4_quota_of_a_job_that_has_ended_is_found(j: Journal, status: str) -> None:
    a = admitted(j)
    pods = a.start()
    j.at(5)
    a.state(status, "SUCCEEDED")
    for pod in pods:
        pod.gone()
    (found,) = idle(j, until=35)
    assert (found.cause, found.klass, found.seconds) == ("ended", "hazard", (30.0, 30.0))
    assert "its job has ended (allowed: 10 s)" in found.text


def test_a_job_that_is_finished_in_time_is_fine(j: Journal) -> None:
    a = admitted(j)
    pods = a.start()
    j.at(5)
    a.state("Complete", "SUCCEEDED")
    for pod in pods:
        pod.gone()
    j.at(14)
    a.workload.finish("Succeeded")
    assert idle(j, until=90) == []


def test_a_job_that_has_ended_holds_no_idle_quota_while_its_head_is_kept(j: Journal) -> None:
    a = admitted(j)
    a.start()
    j.at(5)
    a.state("Complete", "SUCCEEDED")
    assert idle(j, until=90) == []


def test_s1_the_seconds_before_the_first_pod_are_fine(j: Journal) -> None:
    a = admitted(j)
    j.at(3)
    a.pod("head")
    assert idle(j, until=300) == []
    assert owed(j, until=300) == []


def test_s2_a_retry_without_pods_is_fine(j: Journal) -> None:
    a = admitted(j)
    for pod in a.start():
        pod.gone()
    a.state("Retrying")
    j.at(5)
    a.state("New")
    a.stop_cluster()
    a.pod("head", "2")
    assert idle(j, until=300) == []


def test_s3_quota_that_is_reserved_while_a_check_is_pending_is_fine(j: Journal) -> None:
    a = j.at(-1).job("a", j.queue())
    j.at(0)
    a.workload.reserve()
    assert idle(j, until=600) == []
    assert owed(j, until=600) == []


def test_idle_time_counts_from_the_admission_not_from_the_reservation(j: Journal) -> None:
    a = j.at(-1).job("a", j.queue())
    j.at(0)
    a.workload.reserve()
    j.at(600)
    a.workload.admit()
    a.suspend(False)
    (found,) = idle(j, until=690)
    assert found.seconds == (90.0, 90.0)


@pytest.mark.parametrize("controller", ["kuberay", "kueue"])
def test_s4_time_in_which_a_controller_is_dead_does_not_count(j: Journal, controller: str) -> None:
    admitted(j)
    j.marker(f"{controller}-down")
    assert owed(j, until=50)[0][1] is None
    j.at(120).marker(f"{controller}-up")
    assert idle(j, until=190) == []  # 120 s down, 10 s to warm up, 60 s
    assert owed(j, until=150)[0][1] == 190.0
    assert len(idle(j, until=190.001)) == 1


def test_a_job_that_is_being_deleted_is_not_judged(j: Journal) -> None:
    a = admitted(j)
    a.terminate()
    assert idle(j, until=300) == []
    assert owed(j, until=5) == []


def test_a_hold_that_was_there_before_the_journal_may_have_had_pods() -> None:
    j = Journal()
    a = j.job("a", j.queue())
    a.suspend(False)
    a.workload.admit()
    j.records = [dataclasses.replace(e, type="ADDED", listed=True) for e in j.records if isinstance(e, Event)]
    assert idle(j, until=300) == []


def test_forgetting_a_scope_leaves_nothing() -> None:
    j = Journal()
    a = admitted(j)
    j.at(70)
    a.pod("head").gone()
    a.workload.evict()
    ledger = j.ledger(until=100)
    assert len([f for f in ledger.findings(SCOPE) if f.rule == "released-in-time"]) == 1
    ledger.forget(SCOPE)
    assert [f for f in ledger.unscoped([]) if f.rule == "released-in-time"] == []
    (rule,) = [r for r in ledger._rules if isinstance(r, ReleasedInTime)]
    assert (rule._watched, rule._found, len(rule._deadlines)) == ({}, [], 0)
    ledger.add(j.emit("Workload", a.workload.body))
    assert ledger.obligations(SCOPE) == []


def test_quota_that_an_evicted_job_was_never_admitted_on_is_found(j: Journal) -> None:
    a = j.at(-1).job("a", j.queue())
    j.at(0)
    a.workload.reserve()
    j.at(1)
    a.workload.evict()
    assert idle(j, until=60) == []
    (found,) = idle(j, until=62)
    assert found.cause == "evicted"
