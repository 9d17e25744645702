from __future__ import annotations

from typing import Any

import pytest

from raykueue.model.findings import Finding
from tests.audit.journals import Job, Journal, Queue


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param, about=("quota-respected",))


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [f.text for f in findings]
    assert (findings[0].rule, findings[0].klass) == ("quota-respected", "contract")
    return findings[0]


def job(j: Journal, name: str, queue: Queue, cpu: float, **settings: Any) -> Job:
    return j.job(name, queue, pods={"head": cpu}, **settings)


def test_f1_two_workloads_of_two_on_a_quota_of_three_are_one_too_much(j: Journal) -> None:
    q = j.at(0).queue()
    a, b = job(j, "a", q, 2), job(j, "b", q, 2)
    j.at(1)
    a.workload.admit()
    j.at(2)
    b.workload.admit()
    j.at(6)
    a.workload.release()
    found = only(j.findings(until=20))
    assert found.cause == "over-admitted"
    assert found.peak == {"cpu": 1000}
    assert found.payer == f"{b.workload.uid}#1"
    assert found.seconds == (4.0, 4.0)
    assert found.resource_seconds == {"cpu": 4000.0}
    assert "1 CPU of default left" in found.text


def test_f2_more_than_the_borrowing_limit_is_too_much_even_if_the_cohort_has_room(j: Journal) -> None:
    q = j.queue(flavors={"default": {"cpu": (4, 2, None)}}, cohort="co")
    j.queue("b", cpu=9, cohort="co")
    job(j, "a", q, 7).workload.admit()
    found = only(j.findings(until=5))
    assert found.peak == {"cpu": 1000}
    assert found.end is None


def test_f3_a_lender_that_takes_back_more_than_it_kept_is_too_much(j: Journal) -> None:
    qa = j.queue("a", flavors={"default": {"cpu": (4, 2, None)}}, cohort="co")
    qb = j.queue("b", flavors={"default": {"cpu": (4, None, 1)}}, cohort="co")
    job(j, "a", qa, 5).workload.admit()
    job(j, "b", qb, 4).workload.admit()
    found = only(j.findings(until=5))
    assert found.peak == {"cpu": 1000}
    assert found.cluster_queue == "b"
    assert "Cohort co" in found.text


def test_f4_a_tree_of_two_levels_is_summed_up_to_its_root(j: Journal) -> None:
    j.cohort("root", flavors={"default": {"cpu": 2}})
    j.cohort("left", parent="root", flavors={"default": {"cpu": (0, 1, None)}})
    j.cohort("right", parent="root", flavors={"default": {"cpu": (0, None, 3)}})
    qa, qb = j.queue("a", cpu=3, cohort="left"), j.queue("b", cpu=5, cohort="right")
    job(j, "a", qa, 4).workload.admit()
    job(j, "b", qb, 7).workload.admit()
    found = only(j.findings(until=5))
    assert found.peak == {"cpu": 1000}
    assert "Cohort root" in found.text


def test_a_hold_that_grows_beyond_what_is_available_is_found(j: Journal) -> None:
    q = j.queue()
    a = job(j, "a", q, 2)
    a.workload.admit()
    a.workload.body["status"]["admission"]["podSetAssignments"][0]["resourceUsage"]["cpu"] = "4"
    a.workload.write()
    assert only(j.findings(until=5)).peak == {"cpu": 1000}


def test_reserving_alone_counts(j: Journal) -> None:
    q = j.queue()
    job(j, "a", q, 2).workload.reserve()
    job(j, "b", q, 2).workload.reserve()
    assert only(j.findings(until=5)).peak == {"cpu": 1000}


def test_s1_a_quota_that_is_lowered_evicts_nobody(j: Journal) -> None:
    q = j.at(0).queue()
    j.job("a", q).workload.admit()
    j.at(10)
    q.edit(default={"cpu": 1})
    assert j.findings(until=30) == []


def test_a_hold_that_begins_long_after_the_quota_was_lowered_is_judged_by_the_new_one(j: Journal) -> None:
    q = j.at(0).queue()
    a = job(j, "a", q, 2)
    q.edit(default={"cpu": 1})
    j.at(4.9)
    a.workload.admit()
    assert j.findings(until=30) == []
    a.workload.release()
    j.at(5.1)
    a.workload.admit()
    assert only(j.findings(until=30)).peak == {"cpu": 1000}


def test_s2_order_of_arrival_does_not_matter(j: Journal) -> None:
    q = j.at(0).queue()
    v, b = job(j, "v", q, 2), job(j, "b", q, 2)
    v.workload.admit()
    j.at(1)
    v.workload.release(arrives=0.5)
    b.workload.admit()
    assert j.findings(until=5) == []


def test_s3_a_slice_is_charged_instead_of_the_one_it_replaces(j: Journal) -> None:
    q = j.at(0).queue()
    a = job(j, "a", q, 1, counts={"head": 2}, annotations={"kueue.x-k8s.io/elastic-job": "true"})
    a.workload.admit()
    bigger = a.another_workload(replaces=a.workload.name, counts={"head": 3})
    bigger.admit()
    j.at(0.05)
    a.workload.finish("WorkloadSliceReplaced")
    assert j.findings(until=5) == []
    job(j, "b", q, 1).workload.admit()
    assert only(j.findings(until=5)).peak == {"cpu": 1000}


def test_s5_a_quota_raised_before_counts_although_it_arrives_later(j: Journal) -> None:
    q = j.at(0).queue(cpu=1)
    a = job(j, "a", q, 2)
    q.edit(arrives=0.5, default={"cpu": 3})
    j.at(0.01)
    a.workload.admit()
    assert j.findings(until=5) == []


def test_a_cohort_that_was_deleted_a_moment_ago_still_counts(j: Journal) -> None:
    pool = j.at(0).cohort("co", flavors={"default": {"cpu": 2}})
    q = j.queue(cpu=1, cohort="co")
    a, b = job(j, "a", q, 3), job(j, "b", q, 3)
    j.at(10)
    pool.gone()
    j.at(11)
    a.workload.admit()
    a.workload.release()
    assert j.findings(until=30) == []
    j.at(16)
    b.workload.admit()
    assert only(j.findings(until=30)).peak == {"cpu": 2000}


def test_queues_in_a_cycle_of_cohorts_are_not_judged(j: Journal) -> None:
    j.cohort("x", parent="y")
    j.cohort("y", parent="x")
    q = j.queue(cpu=1, cohort="x")
    job(j, "a", q, 3).workload.admit()
    assert j.findings(until=5) == []


def test_a_finished_or_released_workload_makes_room(j: Journal) -> None:
    q = j.queue()
    for n in range(3):
        a = job(j, f"a{n}", q, 3)
        a.workload.admit()
        a.workload.finish()
    assert j.findings(until=5) == []
