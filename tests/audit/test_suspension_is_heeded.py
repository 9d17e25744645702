from __future__ import annotations

from typing import Any

import pytest

from tests.audit.journals import Journal
from tests.audit.suspended import RULE, causes, only, owed, queued, running, unqueued


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param, about=(RULE,))


# -- 7b: suspended in spec, obeyed


def test_f1_a_job_that_waits_for_a_job_id_does_not_heed_suspend(j: Journal) -> None:
    a = running(j, status="Waiting", submissionMode="InteractiveMode")
    a.pod("head")
    j.at(0)
    a.suspend(True)
    found = only(j.findings(until=70))
    assert (found.cause, found.klass) == ("waiting-ignores-suspend", "contract")
    assert found.seconds == (70.0, 70.0)
    assert "RayJob team-ns/a is not suspended for 70000 ms, and still so, though spec.suspend is true" in found.text


@pytest.mark.parametrize(("late", "fires"), [(30.0, False), (30.001, True)])
def test_a_job_is_suspended_within_half_a_minute(j: Journal, late: float, fires: bool) -> None:
    a = running(j)
    j.at(0)
    a.suspend(True)
    a.state("Suspending")
    j.at(late)
    a.state("Suspended")
    a.workload.release()
    assert causes(j.findings(until=40)) == ["not-suspended"] * fires


def test_a_job_that_was_made_suspended_becomes_so(j: Journal) -> None:
    a = j.at(0).job("a", j.queue())
    a.workload.write()
    assert only(j.findings(until=31)).cause == "not-suspended"
    j.at(3)
    a.state("Suspended")
    assert j.findings(until=60) == []


@pytest.mark.parametrize(("late", "fires"), [(360.0, False), (360.001, True)])
@pytest.mark.parametrize(
    "settings",
    [
        {"rayClusterSpec": {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}},
        {"annotations": {"ray.io/ft-enabled": "true"}},
    ],
    ids=["options", "annotation"],
)
def test_with_fault_tolerance_redis_is_cleaned_up_first(
    j: Journal, late: float, fires: bool, settings: dict[str, Any]
) -> None:
    a = running(j, **settings)
    j.at(0)
    a.suspend(True)
    j.at(late)
    a.state("Suspended")
    a.workload.release()
    assert causes(j.findings(until=400)) == ["not-suspended"] * fires


def test_a_retry_finishes_before_it_is_suspended(j: Journal) -> None:
    a = running(j)
    j.at(0)
    a.state("Retrying")
    a.suspend(True)
    j.at(60)
    a.state("")
    j.at(69)
    a.state("Suspended")
    a.workload.release()
    assert j.findings(until=90) == []


def test_an_order_to_suspend_that_is_taken_back_is_forgotten(j: Journal) -> None:
    a = running(j)
    j.at(0)
    a.suspend(True)
    j.at(9)
    a.suspend(False)
    assert j.findings(until=60) == []


@pytest.mark.parametrize("status", ["Complete", "Failed"])
def test_a_job_that_is_over_is_never_suspended(j: Journal, status: str) -> None:
    a = running(j)
    a.state(status)
    a.workload.finish()
    a.suspend(True)
    assert j.findings(until=60) == []


def test_an_invalid_job_does_not_heed_suspend_and_that_matters_if_it_has_pods(j: Journal) -> None:
    a = running(j)
    head = a.pod("head")
    a.state("ValidationFailed")
    j.at(0)
    a.suspend(True)
    assert only(j.findings(until=31)).cause == "validation-failed-ignores-suspend"
    j.at(5)
    head.gone()
    a.state("ValidationFailed")
    assert j.findings(until=60) == []


def test_a_job_that_nobody_queued_heeds_suspend_too(j: Journal) -> None:
    a, _ = unqueued(j)
    j.at(0)
    a.suspend(True)
    assert only(j.findings(until=31)).cause == "not-suspended"


def test_a_job_that_is_being_deleted_is_not_waited_for(j: Journal) -> None:
    a = running(j)
    j.at(0)
    a.suspend(True)
    j.at(5)
    a.terminate()
    assert j.findings(until=60) == []
    assert owed(j, until=6) == []


# -- 7c: not suspended, admitted


def test_f3_a_job_that_runs_though_its_workload_is_pending(j: Journal) -> None:
    a = queued(j)
    j.at(0)
    a.suspend(False)
    found = only(j.findings(until=10))
    assert (found.cause, found.klass, found.seconds) == ("not-admitted", "contract", (10.0, 10.0))
    assert "is not suspended for 10000 ms, and still so, though Workload rayjob-a-1 is not admitted" in found.text


@pytest.mark.parametrize(("late", "fires"), [(5.0, False), (5.001, True)])
@pytest.mark.parametrize("end", ["suspended", "admitted"])
def test_kueue_takes_an_unsuspension_back_within_five_seconds(j: Journal, late: float, fires: bool, end: str) -> None:
    a = queued(j)
    j.at(0)
    a.suspend(False)
    j.at(late)
    if end == "suspended":
        a.suspend(True)
    else:
        a.workload.admit()
    assert causes(j.findings(until=20)) == ["not-admitted"] * fires


def test_the_newest_unfinished_workload_counts(j: Journal) -> None:
    a = running(j)
    j.at(0)
    a.another_workload().write()
    assert only(j.findings(until=10)).cause == "not-admitted"


def test_quota_that_is_reserved_but_not_admitted_is_not_enough(j: Journal) -> None:
    a = queued(j)
    j.at(0)
    a.workload.reserve()
    a.suspend(False)
    assert only(j.findings(until=10)).cause == "not-admitted"


def test_s1_the_admission_was_written_first_though_it_arrives_last(j: Journal) -> None:
    a = queued(j)
    j.at(0)
    a.workload.admit(arrives=7)
    a.suspend(False)
    assert j.findings(until=30) == []


def test_s2_a_finished_job_stays_unsuspended(j: Journal) -> None:
    a = running(j)
    a.state("Complete", "SUCCEEDED")
    a.workload.finish()
    a.workload.gone()
    assert j.findings(until=60) == []


def test_s5_an_invalid_job_loses_its_quota_without_being_suspended(j: Journal) -> None:
    a = running(j)
    a.state("ValidationFailed")
    a.workload.condition("QuotaReserved", False, "OnHold")
    a.workload.release()
    assert j.findings(until=60) == []


def test_s6_an_unsuspension_that_kueue_takes_back_at_once_is_fine(j: Journal) -> None:
    a = queued(j)
    j.at(0)
    a.suspend(False)
    j.at(0.2)
    a.suspend(True)
    assert j.findings(until=60) == []


def test_a_job_without_any_workload_yet_is_one_workloads_matter(j: Journal) -> None:
    a = j.at(0).job("a", j.queue())
    a.suspend(False)
    assert j.findings(until=60) == []


@pytest.mark.parametrize(
    ("labels", "annotations"),
    [
        ({}, {"kueue.x-k8s.io/elastic-job": "true"}),
        ({"kueue.x-k8s.io/prebuilt-workload-name": "mine"}, {}),
    ],
    ids=["elastic", "prebuilt"],
)
def test_jobs_that_wait_for_their_quota_in_other_ways_are_not_judged(
    j: Journal, labels: dict[str, str], annotations: dict[str, str]
) -> None:
    a = queued(j, annotations=annotations)
    a.body["metadata"]["labels"] |= labels
    a.suspend(False)
    assert j.findings(until=60) == []


def test_a_job_that_nobody_queued_needs_no_admission(j: Journal) -> None:
    unqueued(j)
    assert j.findings(until=60) == []


def test_the_cluster_of_a_job_is_not_judged_by_itself(j: Journal) -> None:
    a = running(j)
    cluster = a.start_cluster()
    body = a.owned("Workload", "of-the-cluster", cluster, "RayCluster")
    body |= {"spec": {"active": True, "podSets": []}, "status": {"conditions": []}}
    j.emit("Workload", body, "ADDED")
    cluster["status"] = {"state": "ready"}
    j.emit("RayCluster", cluster)
    assert j.findings(until=60) == []
