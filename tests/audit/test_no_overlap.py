from __future__ import annotations

import pytest

from raykueue.model.findings import Finding
from tests.audit.handed import SCOPE, gone, handed_over, preempt, running
from tests.audit.journals import NAMESPACE, Job, Journal


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param, about=("no-overlap", "quota-respected"))


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [f.text for f in findings]
    assert (findings[0].rule, findings[0].klass) == ("no-overlap", "hazard")
    return findings[0]


def f1(j: Journal) -> tuple[Job, Job]:
    """A released with 2.5 live, B W+a@0.1, B P+h@1, B P+w@2, A P-@4."""
    q = j.at(-30).queue()
    a, pods = running(j, "a", q)
    b = j.job("b", q)
    j.at(0)
    preempt(a)
    j.at(0.1)
    b.workload.admit()
    b.suspend(False)
    j.at(1)
    b.pod("head")
    j.at(2)
    b.pod("workers")
    j.at(4)
    gone(pods)
    return a, b


def test_f1_an_heir_that_starts_while_the_donors_pods_live(j: Journal) -> None:
    a, b = f1(j)
    found = only(j.findings(until=10))
    assert found.cause == "evicted/not-yet-deleted"
    assert found.seconds == (3.0, 3.0)
    assert (found.begin.t - j.now) / 1e9 == -3.0
    assert found.peak == {"cpu": 1500}
    assert found.resource_seconds == {"cpu": 3500.0}
    assert found.payer == f"{a.workload.uid}#1"
    assert [str(ref) for ref in found.objects] == [
        f"RayJob {NAMESPACE}/a",
        f"Workload {NAMESPACE}/rayjob-a-1",
        f"RayJob {NAMESPACE}/b",
        f"Workload {NAMESPACE}/rayjob-b-1",
    ]
    assert "100 ms after its release" in found.text
    assert "used 1.5 CPU of it at once with pods that still lived for 3000 ms" in found.text
    assert "on nodes for 3000 ms, running for 3000 ms" in found.text
    one = handed_over(j, until=10)
    assert (one.job.name, one.payer, one.cluster_queue) == ("b", f"{b.workload.uid}#1", "cq")
    assert [(donor.job.name, donor.payer) for donor in one.donors] == [("a", found.payer)]
    assert one.debt == {"cpu": 2000}
    assert one.gained - one.released == 100.0
    assert one.first_pod is not None
    assert one.first_pod - one.released == 1000.0
    assert one.gone is not None
    assert one.gone - one.released == 4000.0
    assert one.lead_ms == -3000.0
    assert (one.overlap_ms, one.bound_ms, one.running_ms) == (3000.0, 3000.0, 3000.0)


def test_f2_an_heir_in_another_queue_of_the_cohort_that_takes_its_quota_back(j: Journal) -> None:
    qa, qb = j.at(-30).queue("a", cpu=1, cohort="co"), j.queue("b", cpu=2, cohort="co")
    a, pods = running(j, "a", qa)
    b = j.job("b", qb, pods={"head": 2})
    j.at(0)
    preempt(a)
    b.workload.admit()
    b.suspend(False)
    j.at(1)
    b.pod("head")
    j.at(3)
    gone(pods)
    found = only(j.findings(until=10))
    assert found.peak == {"cpu": 1500}
    assert found.seconds == (2.0, 2.0)
    assert found.cluster_queue == "b"
    assert handed_over(j, until=10).donors[0].job.name == "a"


def test_f3_an_heir_that_starts_while_the_ttl_of_a_finished_job_runs(j: Journal) -> None:
    q = j.at(-30).queue()
    a, pods = running(j, "a", q, ttlSecondsAfterFinished=20)
    b = j.job("b", q)
    pods.pop().end()
    j.at(0)
    a.state("Complete", "SUCCEEDED")
    a.workload.finish()
    b.workload.admit()
    j.at(2)
    b.start()
    j.at(22)
    gone(pods)
    found = only(j.findings(until=30))
    assert found.cause == "finished/clean-up"
    assert found.seconds == (20.0, 20.0)
    assert found.peak == {"cpu": 1500}
    assert "0 ms after its release" in found.text


def test_the_cause_is_that_of_the_donor_whose_pods_lasted_longest(j: Journal) -> None:
    q = j.at(-30).queue(cpu=5)
    a, pods_a = running(j, "a", q)
    c, pods_c = running(j, "c", q, ttlSecondsAfterFinished=20)
    b = j.job("b", q, pods={"head": 5})
    j.at(0)
    preempt(a)
    c.state("Complete", "SUCCEEDED")
    c.workload.finish()
    b.workload.admit()
    b.start()
    j.at(3)
    gone(pods_a)
    j.at(9)
    gone(pods_c)
    found = only(j.findings(until=30))
    assert (found.cause, found.payer) == ("finished/clean-up", f"{c.workload.uid}#1")
    assert found.peak == {"cpu": 5000}
    assert found.resource_seconds == {"cpu": 5000.0 * 3 + 2500.0 * 6}
    assert "(and 1 more)" in found.text
    one = handed_over(j, until=30)
    assert {donor.job.name for donor in one.donors} == {"a", "c"}
    assert one.lead_ms == -9000.0


def test_an_overlap_belongs_to_a_broken_promise_that_caused_it(j: Journal) -> None:
    j.about = ()
    q = j.at(-30).queue()
    a, _ = running(j, "a", q)
    b = j.job("b", q)
    j.at(0)
    a.workload.evict()
    a.workload.release()
    b.workload.admit()
    b.start()
    found = {f.rule: f for f in j.findings(until=1) if f.rule in ("no-overlap", "no-survivors")}
    assert found["no-survivors"].cause == found["no-overlap"].cause == "evicted/early"
    assert found["no-survivors"].part_of == ""
    assert found["no-overlap"].part_of == found["no-survivors"].id


def test_pods_born_after_the_release_are_donors_too(j: Journal) -> None:
    q = j.at(-30).queue()
    a, pods = running(j, "a", q)
    b = j.job("b", q)
    gone(pods)
    j.at(0)
    preempt(a)
    late = a.pod("head", "late")
    j.at(1)
    b.workload.admit()
    b.start()
    j.at(3)
    late.gone()
    found = only(j.findings(until=10))
    assert (found.cause, found.payer, found.objects[0].name) == ("born-after-release", "", "a")
    assert found.peak == {"cpu": 500}
    assert found.seconds == (2.0, 2.0)


def test_a_job_that_is_admitted_again_beside_its_own_old_pods_is_its_own_heir(j: Journal) -> None:
    q = j.at(-30).queue()
    a, pods = running(j, "a", q)
    j.at(0)
    preempt(a)
    j.at(1)
    a.workload.admit()
    a.suspend(False)
    a.pod("head", "again")
    j.at(2)
    gone(pods)
    found = only(j.findings(until=10))
    assert found.peak == {"cpu": 500}
    assert found.payer.endswith("#1")
    assert handed_over(j, until=10).payer.endswith("#2")


def test_pods_without_a_node_overlap_in_quota_but_not_on_nodes(j: Journal) -> None:
    q = j.at(-30).queue()
    a, pods = running(j, "a", q)
    b = j.job("b", q)
    j.at(0)
    preempt(a)
    b.workload.admit()
    b.pod("head", node="")
    j.at(3)
    gone(pods)
    assert "never both on nodes" in only(j.findings(until=10)).text
    one = handed_over(j, until=10)
    assert (one.overlap_ms, one.bound_ms, one.running_ms) == (3000.0, 0.0, 0.0)


def test_an_overlap_that_ends_and_comes_back_is_found_twice(j: Journal) -> None:
    q = j.at(-30).queue()
    a, pods = running(j, "a", q)
    b = j.job("b", q)
    j.at(0)
    preempt(a)
    b.workload.admit()
    first = b.pod("head")
    j.at(1)
    first.end("Failed")
    j.at(3)
    b.pod("head", "2")
    j.at(4)
    gone(pods)
    assert [f.seconds for f in j.findings(until=10)] == [(1.0, 1.0), (1.0, 1.0)]
    assert handed_over(j, until=10).overlap_ms == 2000.0


def test_a_quota_raised_meanwhile_ends_an_overlap(j: Journal) -> None:
    q = j.at(-30).queue()
    a, pods = running(j, "a", q)
    b = j.job("b", q)
    j.at(0)
    preempt(a)
    b.workload.admit()
    b.start()
    j.at(1)
    q.edit(default={"cpu": 5})
    j.at(3)
    gone(pods)
    assert only(j.findings(until=10)).seconds == (1.0, 1.0)


def test_an_overlap_that_goes_on_is_open(j: Journal) -> None:
    q = j.at(-30).queue()
    a, _ = running(j, "a", q)
    b = j.job("b", q)
    j.at(0)
    preempt(a)
    b.workload.admit()
    b.start()
    found = only(j.findings(until=7))
    assert (found.end, found.seconds) == (None, (7.0, 7.0))
    one = handed_over(j, until=7)
    assert (one.gone, one.lead_ms, one.overlap_ms) == (None, None, 7000.0)


def test_s1_quota_for_both(j: Journal) -> None:
    q = j.at(-30).queue(cpu=6)
    a, pods = running(j, "a", q)
    b = j.job("b", q)
    j.at(0)
    preempt(a)
    b.workload.admit()
    b.start()
    j.at(4)
    gone(pods)
    assert j.findings(until=10) == []
    assert j.ledger(until=10).handovers(SCOPE) == []


def test_s2_an_heir_that_starts_after_the_last_old_pod_is_clean(j: Journal) -> None:
    q = j.at(-30).queue()
    a, pods = running(j, "a", q)
    b = j.job("b", q)
    j.at(0)
    preempt(a)
    b.workload.admit()
    j.at(4)
    gone(pods)
    j.at(5)
    b.start()
    assert j.findings(until=10) == []
    one = handed_over(j, until=10)
    assert (one.lead_ms, one.overlap_ms, one.peak) == (1000.0, 0, {})
    j.about = ("no-survivors",)
    assert [f.seconds for f in j.findings(until=10)] == [(4.0, 4.0)]


def test_s3_an_heir_whose_pods_are_gated_until_the_donor_is_gone(j: Journal) -> None:
    q = j.at(-30).queue()
    a, pods = running(j, "a", q)
    b = j.job("b", q)
    j.at(0)
    preempt(a)
    b.workload.admit()
    waiting = [b.pod("head", gated=True), b.pod("workers", gated=True)]
    j.at(4)
    gone(pods)
    for pod in waiting:
        pod.ungate()
    assert j.findings(until=10) == []
    assert handed_over(j, until=10).lead_ms == 0.0


def test_s4_jobs_that_fit_together_never_hand_over(j: Journal) -> None:
    q = j.at(-30).queue(cpu=5)
    a, pods = running(j, "a", q)
    running(j, "b", q)
    j.at(0)
    preempt(a)
    j.at(9)
    gone(pods)
    assert j.findings(until=10) == []
    assert j.ledger(until=10).handovers(SCOPE) == []


def test_an_heir_that_had_its_quota_before_the_donors_hold_ended_takes_nothing(j: Journal) -> None:
    q = j.at(-30).queue(cpu=5)
    a, pods = running(j, "a", q)
    b = j.job("b", q)
    b.workload.admit()
    j.at(0)
    preempt(a)
    b.start()
    q.edit(default={"cpu": 3})
    j.at(4)
    gone(pods)
    assert [f for f in j.findings(until=10) if f.rule == "no-overlap"] == []


def test_an_heir_within_quota_that_it_never_lends_overlaps_with_nobody(j: Journal) -> None:
    qa = j.at(-30).queue("a", cpu=3, cohort="co")
    qb = j.queue("b", flavors={"default": {"cpu": (3, None, 0)}}, cohort="co")
    a, pods = running(j, "a", qa)
    b = j.job("b", qb)
    j.at(0)
    preempt(a)
    b.workload.admit()
    b.start()
    j.at(4)
    gone(pods)
    assert j.findings(until=10) == []


def test_a_slice_that_replaces_another_takes_only_what_it_has_more(j: Journal) -> None:
    q = j.at(-30).queue(cpu=5)
    a, pods = running(j, "a", q, pods={"head": 2})
    b, _ = running(j, "b", q, pods={"head": 2}, annotations={"kueue.x-k8s.io/elastic-job": "true"})
    j.at(0)
    preempt(a)
    bigger = b.another_workload(replaces=b.workload.name)
    bigger.admit()
    b.workload.finish("WorkloadSliceReplaced")
    j.at(4)
    gone(pods)
    assert j.findings(until=10) == []
    assert j.ledger(until=10).handovers(SCOPE) == []


def test_queues_in_a_cycle_of_cohorts_are_not_judged(j: Journal) -> None:
    j.at(-30).cohort("x", parent="y")
    j.cohort("y", parent="x")
    q = j.queue(cohort="x")
    a, pods = running(j, "a", q)
    b = j.job("b", q)
    j.at(0)
    preempt(a)
    b.workload.admit()
    b.start()
    gone(pods)
    assert j.findings(until=10) == []


def test_what_was_handed_over_in_a_closed_scope_is_forgotten(j: Journal) -> None:
    f1(j)
    ledger = j.ledger(until=10)
    ledger.forget(SCOPE)
    assert ledger.handovers(SCOPE) == []
    assert [f for f in ledger.unscoped([]) if f.rule == "no-overlap"] == []
