from __future__ import annotations

from typing import Any

import pytest

from raykueue.audit.answers import Obligation
from raykueue.audit.ledger import Ledger
from raykueue.audit.scope import Scope
from raykueue.model.findings import Finding
from tests.audit.journals import NAMESPACE, PAIR, Job, Journal

SCOPE = Scope(frozenset({NAMESPACE}), frozenset({"cq"}))


@pytest.fixture
def j() -> Journal:
    return Journal(about=("no-survivors",))


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [f.text for f in findings]
    assert findings[0].rule == "no-survivors"
    return findings[0]


def running(j: Journal, status: str = "Running", **settings: Any) -> Job:
    a = j.at(-20).job("a", j.queue(), **settings)
    a.workload.admit()
    a.suspend(False)
    a.state(status, "RUNNING")
    return a


def suspended(a: Job) -> None:
    """Wev, J.s=T, C-, J:Suspended."""
    a.workload.evict()
    a.suspend(True)
    if a.cluster:
        a.stop_cluster()
    a.state("Suspended")


def test_f1_a_head_that_terminates_after_its_job_was_evicted(j: Journal) -> None:
    a = running(j)
    head = a.pod("head")
    j.at(-1)
    suspended(a)
    head.terminate()
    j.at(0)
    a.workload.release()
    j.at(4)
    head.gone()
    found = only(j.findings(until=10))
    assert (found.cause, found.klass) == ("evicted/terminating", "hazard")
    assert found.seconds == (4.0, 4.0)
    assert found.peak == {"cpu": 1000}
    assert found.resource_seconds == {"cpu": 4000.0}
    assert found.payer == f"{a.workload.uid}#1"
    assert "pod a-head-1 used 1 CPU unpaid for 4000 ms" in found.text
    assert "1 terminating" in found.text


def test_pods_that_nobody_deleted_yet_are_another_cause(j: Journal) -> None:
    a = running(j)
    head, worker = a.pod("head"), a.pod("workers")
    j.at(0)
    suspended(a)
    head.terminate()
    a.workload.release()
    j.at(1)
    worker.terminate()
    j.at(3)
    head.gone()
    worker.gone()
    found = only(j.findings(until=10))
    assert found.cause == "evicted/not-yet-deleted"
    assert found.peak == {"cpu": 2000}


def test_f2_pods_that_live_on_for_the_ttl(j: Journal) -> None:
    a = running(j, ttlSecondsAfterFinished=20)
    pods = [a.pod("head"), a.pod("workers")]
    j.at(0)
    a.state("Complete", "SUCCEEDED")
    a.workload.finish()
    j.at(22)
    for pod in pods:
        pod.gone()
    found = only(j.findings(until=30))
    assert (found.cause, found.klass) == ("finished/clean-up", "hazard")
    assert found.peak == {"cpu": 2000}
    assert found.seconds == (22.0, 22.0)


def test_f3_a_new_hold_of_the_same_workload_does_not_pay_for_the_old_head(j: Journal) -> None:
    a = running(j)
    old = a.pod("head")
    suspended(a)
    j.at(0)
    a.workload.release()
    j.at(2)
    a.workload.admit()
    j.at(3)
    a.pod("head", "2")
    j.at(10)
    old.gone()
    found = only(j.findings(until=20))
    assert found.seconds == (10.0, 10.0)
    assert found.peak == {"cpu": 1000}
    assert found.payer.endswith("#1")


def test_f4_pods_of_a_deactivated_workload(j: Journal) -> None:
    a = running(j)
    head = a.pod("head")
    j.at(0)
    a.workload.off()
    j.at(6)
    head.gone()
    found = only(j.findings(until=20))
    assert (found.cause, found.seconds) == ("deactivated", (6.0, 6.0))


def test_f5_a_pod_that_still_lives_at_the_end_is_open(j: Journal) -> None:
    a = running(j)
    a.pod("head")
    suspended(a)
    j.at(0)
    a.workload.release()
    found = only(j.findings(until=9))
    assert found.end is None
    assert found.seconds == (9.0, 9.0)
    assert "still so" in found.text


def test_f6_an_eviction_while_the_job_runs_breaks_a_promise(j: Journal) -> None:
    a = running(j)
    a.pod("head")
    j.at(0)
    a.workload.evict()
    a.workload.release()
    found = only(j.findings(until=9))
    assert (found.cause, found.klass) == ("evicted/early", "contract")
    assert "while its job was Running" in found.text


def test_an_eviction_that_crosses_a_status_written_just_before_is_a_race(j: Journal) -> None:
    a = running(j, status="")
    a.pod("head")
    a.workload.evict()
    j.at(0)
    a.state("Initializing")
    j.at(0.4)
    a.workload.release()
    found = only(j.findings(until=9))
    assert (found.cause, found.klass) == ("evicted/race", "hazard")


@pytest.mark.parametrize(("kueue", "cause"), [("0.10.6", "evicted/early"), ("0.11.0", "evicted/not-yet-deleted")])
def test_a_new_job_counts_as_inactive_from_kueue_0_11_on(kueue: str, cause: str) -> None:
    j = Journal(pair={**PAIR, "kueue": kueue}, about=("no-survivors",))
    a = running(j, status="")
    a.pod("head")
    j.at(0)
    a.workload.evict()
    a.workload.release()
    assert only(j.findings(until=9)).cause == cause


def test_f7_a_pod_born_after_the_release(j: Journal) -> None:
    a = running(j)
    a.pod("head").gone()
    suspended(a)
    j.at(0)
    a.workload.release()
    j.at(1)
    head = a.pod("head", "2")
    j.at(3)
    head.gone()
    found = only(j.findings(until=20))
    assert (found.cause, found.klass, found.payer) == ("born-after-release", "hazard", "")
    assert found.seconds == (2.0, 2.0)


@pytest.mark.parametrize("seconds", [0.2, 8.0])
def test_f8_a_pod_made_for_a_cluster_that_is_gone(j: Journal, seconds: float) -> None:
    a = running(j)
    old, cluster = a.pod("head"), a.cluster
    j.at(0)
    old.gone()
    a.state("Complete", "SUCCEEDED")
    a.workload.finish("Succeeded")
    a.stop_cluster()
    a.cluster = cluster
    j.at(1)
    again = a.pod("head", "2")
    j.at(1 + seconds)
    again.gone()
    found = only(j.findings(until=20))
    assert (found.cause, found.payer) == ("made-for-a-deleted-owner", "")
    assert found.klass == ("hazard" if seconds < 5 else "contract")
    assert found.seconds == (seconds, seconds)


def strategy(success: str = "DeleteCluster", failure: str = "DeleteCluster") -> dict[str, Any]:
    return {"onSuccess": {"policy": success}, "onFailure": {"policy": failure}}


@pytest.mark.parametrize(
    ("spec", "status", "cause", "klass"),
    [
        ({}, "SUCCEEDED", "finished/clean-up", "hazard"),
        ({"deletionStrategy": strategy("DeleteWorkers")}, "SUCCEEDED", "finished/head-kept", "hazard"),
        ({"deletionStrategy": strategy("DeleteWorkers")}, "FAILED", "finished/clean-up", "hazard"),
        ({"deletionStrategy": strategy(failure="DeleteWorkers")}, "FAILED", "finished/head-kept", "hazard"),
        ({"deletionPolicy": "DeleteWorkers"}, "FAILED", "finished/head-kept", "hazard"),
        ({"deletionStrategy": strategy()}, "RUNNING", "finished/no-policy", "contract"),
        ({"deletionStrategy": strategy()}, "", "finished/no-policy", "contract"),
        ({}, "STOPPED", "finished/clean-up", "hazard"),
    ],
)
def test_what_happens_after_a_job_finished_is_said_by_its_policy(
    j: Journal, spec: dict[str, Any], status: str, cause: str, klass: str
) -> None:
    a = running(j, **spec)
    a.pod("head")
    a.state("Complete", status)
    a.workload.finish("Succeeded")
    found = only(j.findings(until=1))
    assert (found.cause, found.klass) == (cause, klass)


def test_pods_of_a_deleted_job_by_either_way_to_end_its_hold(j: Journal) -> None:
    a = running(j)
    a.pod("head")
    a.terminate()
    a.workload.finish("OwnerNotFound")
    b = j.job("b", a.queue)
    b.workload.admit()
    b.pod("head")
    b.gone()
    b.workload.gone()
    assert [f.cause for f in j.findings(until=1) if f.rule == "no-survivors"] == ["owner-deleted"] * 2


def test_pods_of_a_workload_that_somebody_removed(j: Journal) -> None:
    a = running(j)
    a.pod("head")
    a.workload.gone()
    assert only(j.findings(until=1)).cause == "workload-deleted"


def test_pods_of_a_job_that_was_put_on_hold(j: Journal) -> None:
    a = running(j)
    a.pod("head")
    a.state("ValidationFailed")
    a.workload.release()
    assert only(j.findings(until=1)).cause == "on-hold"


def test_a_redis_clean_up_pod_is_a_cause_of_its_own_whenever_it_was_born(j: Journal) -> None:
    a = running(j)
    head = a.pod("head")
    a.state("Complete", "SUCCEEDED")
    j.at(0)
    a.workload.finish()
    labels = {"ray.io/node-type": "redis-cleanup", "ray.io/cluster": "a-00001", "kueue.x-k8s.io/podset": "head"}
    cleanup = a.pod("head", "redis", labels=labels)
    j.at(2)
    head.gone()
    j.at(9)
    cleanup.gone()
    found = {f.cause: f.seconds[0] for f in j.findings(until=20)}
    assert found == {"finished/clean-up": 2.0, "redis-clean-up": 9.0}


def test_a_window_of_no_time_between_two_revisions_is_real(j: Journal) -> None:
    a = running(j)
    head = a.pod("head")
    suspended(a)
    j.at(0)
    a.workload.release()
    head.gone()
    found = only(j.findings(until=5))
    assert found.seconds == (0.0, 0.0)
    assert found.resource_seconds == {}
    assert found.end is not None
    assert found.begin.rev < found.end.rev


def test_s1_a_pod_that_was_gone_first_is_fine_although_it_arrives_last(j: Journal) -> None:
    a = running(j)
    head = a.pod("head")
    suspended(a)
    j.at(0)
    head.gone(arrives=0.5)
    a.workload.release()
    assert j.findings(until=5) == []


def test_s2_a_submitter_that_ended_is_no_survivor(j: Journal) -> None:
    a = running(j)
    submitter, head, worker = a.pod("submitter"), a.pod("head"), a.pod("workers")
    submitter.end()
    head.gone()
    worker.gone()
    a.state("Complete", "SUCCEEDED")
    a.workload.finish()
    assert j.findings(until=5) == []


def test_s3_pods_of_a_replaced_slice_live_on(j: Journal) -> None:
    a = running(j, annotations={"kueue.x-k8s.io/elastic-job": "true"})
    a.pod("workers")
    bigger = a.another_workload(replaces=a.workload.name)
    bigger.admit()
    a.workload.finish("WorkloadSliceReplaced")
    assert j.findings(until=5) == []


def test_s4_a_job_that_is_deleted_with_all_its_pods_first(j: Journal) -> None:
    a = running(j)
    head = a.pod("head")
    a.terminate()
    head.gone()
    a.gone()
    a.workload.gone()
    assert j.findings(until=5) == []


def test_a_hold_that_ended_without_a_pod_is_fine(j: Journal) -> None:
    a = running(j)
    a.workload.release()
    assert j.findings(until=5) == []


def test_gated_pods_of_an_ended_hold_use_nothing(j: Journal) -> None:
    a = running(j)
    a.pod("workers", gated=True)
    a.workload.finish()
    assert j.findings(until=5) == []


def owed_by(ledger: Ledger) -> list[Obligation]:
    return [one for one in ledger.obligations(SCOPE) if one.rule == "no-survivors"]


def test_the_test_waits_for_the_last_pod_and_no_longer_than_deletion_may_take(j: Journal) -> None:
    a = running(j)
    head = a.pod("head", grace=4)
    j.at(0)
    a.terminate()
    a.workload.finish("OwnerNotFound")
    (owed,) = owed_by(j.ledger(until=1))
    assert (owed.rule, owed.until) == ("no-survivors", None)
    j.at(2)
    a.gone()
    (owed,) = owed_by(j.ledger(until=3))
    assert owed.until == j.now + 14 * 10**9
    head.gone()
    assert owed_by(j.ledger(until=3)) == []
