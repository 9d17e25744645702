from __future__ import annotations

from typing import Any

import pytest

from raykueue.model.findings import Finding
from tests.audit.journals import Job, Journal, Queue


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param, about=("pods-covered",))


MI = 1 << 20
MEMORY = {"default": {"cpu": 30, "memory": "64Gi"}}


def covered(findings: list[Finding]) -> list[Finding]:
    """The books follow no charge in these journals: only pods are looked at."""
    assert {f.rule for f in findings} <= {"pods-covered"}, [f.text for f in findings]
    return findings


def only(findings: list[Finding]) -> Finding:
    assert len(covered(findings)) == 1, [f.text for f in findings]
    return findings[0]


def started(j: Journal, queue: Queue | None = None, **settings: Any) -> Job:
    a = j.at(-2).job("a", queue or j.queue(cpu=30), **settings)
    a.workload.admit()
    a.suspend(False)
    return a


def test_f1_a_container_that_kueue_does_not_count_is_found_and_named(j: Journal) -> None:
    a = started(j)
    j.at(0)
    head = a.pod("head", more={"istio-proxy": 0.5})
    j.at(10)
    head.gone()
    found = only(j.findings(until=20))
    assert (found.rule, found.cause, found.klass) == ("pods-covered", "under-count", "contract")
    assert found.peak == {"cpu": 500}
    assert found.seconds == (10.0, 10.0)
    assert found.resource_seconds == {"cpu": 5000.0}
    assert found.payer == f"{a.workload.uid}#1"
    assert "istio-proxy" in found.text
    assert "0.5 CPU" in found.text
    assert "10000 ms" in found.text
    assert [r.kind for r in found.objects] == ["RayJob", "Workload", "Pod"]


def test_f2_an_init_container_that_asks_more_than_the_worker_is_found_per_worker(j: Journal) -> None:
    a = started(j, j.queue(flavors=MEMORY), pods={"head": 1, "workers": {"cpu": 0.1, "memory": "64Mi"}})
    a.workload.body["status"]["admission"]["podSetAssignments"][1]["count"] = 2
    a.workload.body["status"]["admission"]["podSetAssignments"][1]["resourceUsage"] = {"cpu": "200m", "memory": "128Mi"}
    a.workload.body["spec"]["podSets"][1]["count"] = 2
    a.workload.write()
    init = {"name": "wait-gcs-ready", "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}}}
    for n in "12":
        a.pod("workers", n, inits=[init])
    found = only(j.findings(until=5))
    assert found.cause == "under-count"
    assert found.peak == {"cpu": 200, "memory": 2 * 192 * MI}
    assert "wait-gcs-ready" in found.text


def test_a_covered_resource_that_the_assignment_lacks_is_charged_nothing(j: Journal) -> None:
    a = started(j, j.queue(flavors=MEMORY), pods={"workers": 1})
    init = {"name": "wait-gcs-ready", "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}}}
    a.pod("workers", inits=[init])
    found = only(j.findings(until=5))
    assert found.peak == {"memory": 256 * MI}
    assert "masked" not in found.text


def test_f3_two_clusters_of_a_retry_are_extra_pods_until_the_old_head_is_gone(j: Journal) -> None:
    a = started(j)
    old_head, old_worker = a.pod("head"), a.pod("workers")
    j.at(0)
    a.state("Retrying")
    a.stop_cluster()
    a.state("New")
    old_worker.gone()
    a.start_cluster()
    j.at(1)
    a.pod("head", "2")
    j.at(4)
    old_head.gone()
    found = only(j.findings(until=10))
    assert (found.cause, found.klass) == ("extra-pods", "hazard")
    assert found.peak == {"cpu": 1000}
    assert found.seconds == (3.0, 3.0)
    assert "2 live, charged for 1" in found.text


def test_f4_pods_of_a_queued_job_without_any_workload_were_never_charged(j: Journal) -> None:
    a = j.job("a", j.queue())
    a.pod("head", labels={"ray.io/node-type": "head"})
    a.pod("workers", labels={"ray.io/node-type": "worker", "ray.io/group": "Workers"})
    found = only(j.findings(until=10))
    assert (found.cause, found.klass, found.payer) == ("never-charged", "contract", "")
    assert found.peak == {"cpu": 2000}
    assert found.namespace == "team-ns"


def test_f5_an_excess_that_the_total_hides_is_found_and_called_masked(j: Journal) -> None:
    a = started(j)
    a.pod("head", cpu=1.5)
    found = only(j.findings(until=10))
    assert found.peak == {"cpu": 500}
    assert "masked" in found.text
    a.pod("workers")
    a.pod("submitter")
    assert "masked" not in only(j.findings(until=10)).text


def test_a_resize_opens_a_window_and_a_resize_back_closes_it(j: Journal) -> None:
    a = started(j)
    head = a.pod("head")
    j.at(1)
    head.resize(3)
    j.at(3)
    head.resize(1)
    found = only(j.findings(until=10))
    assert found.peak == {"cpu": 2000}
    assert found.seconds == (2.0, 2.0)


def test_under_count_and_extra_pods_of_one_pod_set_are_told_apart(j: Journal) -> None:
    a = started(j)
    a.pod("workers", "1", cpu=1.5)
    a.pod("workers", "2", cpu=1.5)
    found = {f.cause: f.peak for f in covered(j.findings(until=10))}
    assert found == {"under-count": {"cpu": 1000}, "extra-pods": {"cpu": 1000}}


def test_a_charge_that_falls_before_its_pods_is_a_scale_down(j: Journal) -> None:
    a = started(j, counts={"workers": 3})
    pods = [a.pod("workers", str(n)) for n in range(3)]
    j.at(1)
    a.workload.scale("workers", 2)
    j.at(3)
    pods[2].gone()
    found = only(j.findings(until=10))
    assert (found.cause, found.klass) == ("scale-down", "hazard")
    assert found.peak == {"cpu": 1000}
    assert found.seconds == (2.0, 2.0)


def test_a_pod_of_no_known_pod_set_is_an_extra_pod(j: Journal) -> None:
    a = started(j)
    a.pod("other", labels={"app": "x"}, owner=(a.start_cluster(), "RayCluster"))
    assert only(j.findings(until=10)).cause == "extra-pods"


def test_a_clean_up_pod_is_held_against_the_head(j: Journal) -> None:
    a = started(j)
    head = a.pod("head")
    labels = {"ray.io/node-type": "redis-cleanup", "kueue.x-k8s.io/podset": "head", "ray.io/cluster": "a-00001"}
    head.end()
    cleanup = a.pod("head", "redis", labels=labels)
    assert covered(j.findings(until=10)) == []
    cleanup.resize(2)
    assert only(j.findings(until=10)).peak == {"cpu": 1000}


def test_a_queue_that_covers_pods_charges_each_of_them(j: Journal) -> None:
    queue = j.queue(flavors={"default": {"cpu": 30, "pods": "10"}})
    a = started(j, queue, pods={"head": {"cpu": 1, "pods": "1"}})
    a.pod("head", "1", requests={"cpu": 0.5})
    assert covered(j.findings(until=10)) == []
    a.pod("head", "2", requests={"cpu": 0.5})
    assert only(j.findings(until=10)).peak == {"pods": 1}


def test_the_window_ends_with_the_hold(j: Journal) -> None:
    a = started(j)
    a.pod("head", cpu=2)
    j.at(5)
    a.workload.finish()
    found = next(f for f in j.findings(until=10) if f.rule == "pods-covered")
    assert found.seconds == (7.0, 7.0)


def test_s1_a_plain_job_from_start_to_finish_is_fine(j: Journal) -> None:
    a = started(j)
    pods = a.start()
    j.at(5)
    for pod in pods:
        pod.end()
    a.workload.finish()
    for pod in pods:
        pod.gone()
    a.gone()
    a.workload.gone()
    assert covered(j.findings(until=10)) == []


def test_s2_a_worker_that_replaces_a_failed_one_is_fine(j: Journal) -> None:
    a = started(j)
    old = a.pod("workers", "1")
    old.end("Failed")
    a.pod("workers", "2")
    old.gone()
    assert covered(j.findings(until=10)) == []


def test_s3_order_of_arrival_does_not_matter(j: Journal) -> None:
    a = started(j)
    old = a.pod("workers", "1")
    j.at(1)
    old.gone(arrives=0.5)
    a.pod("workers", "2")
    assert covered(j.findings(until=10)) == []


def test_s4_gated_pods_beyond_the_count_are_fine_until_they_are_let_go(j: Journal) -> None:
    a = started(j, annotations={"kueue.x-k8s.io/elastic-job": "true"})
    a.pod("workers")
    extra = [a.pod("workers", f"x{n}", gated=True) for n in range(3)]
    assert covered(j.findings(until=10)) == []
    extra[0].ungate()
    assert only(j.findings(until=10)).peak == {"cpu": 1000}


def test_s5_a_resource_that_the_queue_does_not_cover_is_fine(j: Journal) -> None:
    a = started(j)
    a.pod("head", requests={"cpu": 1, "ephemeral-storage": "10Gi"})
    assert covered(j.findings(until=10)) == []


def test_s6_pods_that_wait_for_a_node_are_fine_within_the_charge(j: Journal) -> None:
    a = started(j)
    a.pod("head", node="")
    assert covered(j.findings(until=10)) == []


def test_a_job_that_kueue_skips_by_design_is_not_judged(j: Journal) -> None:
    a = j.job("a", j.queue(), clusterSelector={"ray.io/cluster": "x"})
    a.pod("head")
    assert covered(j.findings(until=10)) == []


def test_a_job_that_nobody_queued_is_not_judged(j: Journal) -> None:
    a = j.job("a", j.queue(), labelled=False)
    a.pod("head", labels={"ray.io/node-type": "head"})
    assert covered(j.findings(until=10)) == []


def test_a_job_stays_managed_after_its_label_was_removed(j: Journal) -> None:
    a = j.job("a", j.queue())
    del a.body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
    a.suspend(False)
    a.pod("head", labels={"ray.io/node-type": "head"})
    assert only(j.findings(until=10)).cause == "never-charged"


def test_pods_of_a_replaced_slice_pass_to_the_slice_that_replaces_it(j: Journal) -> None:
    a = started(j, annotations={"kueue.x-k8s.io/elastic-job": "true"})
    a.pod("workers", "1")
    gated = a.pod("workers", "2", gated=True)
    j.at(1)
    bigger = a.another_workload(replaces=a.workload.name, counts={"workers": 2})
    bigger.admit()
    a.workload.finish("WorkloadSliceReplaced")
    gated.ungate()
    assert covered(j.findings(until=10)) == []
    a.pod("workers", "3")
    assert only(j.findings(until=10)).payer == f"{bigger.uid}#1"
