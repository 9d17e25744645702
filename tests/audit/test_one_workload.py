from __future__ import annotations

from typing import Any

import pytest

from raykueue.audit.rules.one_workload import OneWorkload
from raykueue.audit.scope import Scope
from raykueue.model.findings import Finding
from tests.audit.journals import EPOCH, NAMESPACE, PAIR, Job, Journal, Workload

RULE = "one-workload"
SCOPE = Scope(frozenset({NAMESPACE}), frozenset({"cq"}))
ELASTIC = {"kueue.x-k8s.io/elastic-job": "true"}


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param, about=(RULE,))


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [f.text for f in findings]
    return findings[0]


def queued(j: Journal, **settings: Any) -> Job:
    """A job with the one Workload it should have."""
    a = j.at(0).job("a", j.queue(), **settings)
    a.workload.write()
    return a


def begin_to_delete(workload: Workload) -> None:
    workload.body["metadata"]["deletionTimestamp"] = "2026-10-01T00:00:00Z"
    workload.write()


def child(a: Job, kind: str, owner: dict[str, Any]) -> dict[str, Any]:
    """A Workload of something below the job."""
    body = a.owned("Workload", f"{kind.lower()}-x", owner, kind)
    body |= {"spec": {"active": True, "podSets": []}, "status": {"conditions": []}}
    a.j.emit("Workload", body, "ADDED")
    return body


def owed(j: Journal, until: float) -> list[tuple[str, str, float | None]]:
    found = [o for o in j.ledger(until).obligations(SCOPE) if o.rule == RULE]
    return [(o.rule, o.text, (o.until - EPOCH) / 1e9 if o.until is not None else None) for o in found]


def test_f1_two_pending_workloads_of_one_job_are_one_too_many(j: Journal) -> None:
    a = queued(j)
    j.at(2)
    second = a.another_workload()
    second.write()
    j.at(5)
    second.gone()
    found = only(j.findings(until=10))
    assert (found.cause, found.klass, found.seconds) == ("two-workloads", "contract", (3.0, 3.0))
    assert [r.kind for r in found.objects] == ["RayJob", "Workload", "Workload"]
    assert "RayJob team-ns/a had 2 unfinished Workloads for 3000 ms (rayjob-a-1, rayjob-a-2)" in found.text


def test_two_workloads_for_no_time_at_all_are_still_two(j: Journal) -> None:
    a = queued(j)
    second = a.another_workload()
    second.write()
    second.gone()
    found = only(j.findings(until=10))
    assert found.seconds == (0.0, 0.0)
    assert found.end is not None
    assert found.begin.rev < found.end.rev


def test_two_workloads_are_two_even_while_kueue_is_down(j: Journal) -> None:
    a = queued(j)
    j.at(1).marker("kueue-down")
    j.at(2)
    a.another_workload().write()
    assert only(j.findings(until=10)).end is None


def test_f2_a_workload_of_a_jobs_cluster_is_found_while_it_exists(j: Journal) -> None:
    a = queued(j)
    j.at(1)
    body = child(a, "RayCluster", a.start_cluster())
    j.at(3)
    a.j.emit("Workload", body, "DELETED")
    found = only(j.findings(until=10))
    assert (found.cause, found.klass, found.seconds) == ("child-workload", "contract", (2.0, 2.0))
    assert "raycluster-x stands for a child of RayJob team-ns/a for 2000 ms" in found.text


def test_a_workload_of_a_jobs_submitter_is_found_too(j: Journal) -> None:
    a = queued(j)
    child(a, "Job", a.owner_of("submitter")[0])
    assert only(j.findings(until=10)).cause == "child-workload"


def test_a_workload_of_a_job_below_the_cluster_is_found_too(j: Journal) -> None:
    a = queued(j)
    cleanup = a.owned("Job", "redis-cleanup", a.start_cluster(), "RayCluster")
    j.emit("Job", cleanup, "ADDED")
    child(a, "Job", cleanup)
    assert only(j.findings(until=10)).cause == "child-workload"


def test_workloads_below_a_job_that_kueue_does_not_manage_are_fine(j: Journal) -> None:
    a = j.job("a", j.queue(), labelled=False)
    child(a, "RayCluster", a.start_cluster())
    assert j.findings(until=20) == []


def test_a_workload_of_a_batch_job_of_its_own_is_nobodys_child(j: Journal) -> None:
    a = queued(j)
    child(a, "Job", {"metadata": {"name": "train", "uid": "some-job"}})
    assert j.findings(until=20) == []


def test_f3_a_queued_job_without_a_workload_is_found(j: Journal) -> None:
    a = j.at(0).job("a", j.queue())
    a.state("Suspended")
    found = only(j.findings(until=15))
    assert (found.cause, found.klass, found.seconds) == ("no-workload", "contract", (15.0, 15.0))
    assert found.end is None
    assert "RayJob team-ns/a had no Workload for 15000 ms, and still so (allowed: 10 s)" in found.text


@pytest.mark.parametrize(("late", "fires"), [(10.0, False), (10.001, True)])
def test_a_workload_may_come_ten_seconds_late_and_no_later(j: Journal, late: float, fires: bool) -> None:
    a = j.at(0).job("a", j.queue())
    j.at(late)
    a.workload.write()
    assert [f.cause for f in j.findings(until=30)] == (["no-workload"] if fires else [])


def test_f4_two_slices_of_an_elastic_job_of_which_none_replaces_the_other(j: Journal) -> None:
    a = queued(j, annotations=ELASTIC)
    a.another_workload().write()
    assert only(j.findings(until=5)).cause == "unrelated-slices"


def test_three_slices_of_an_elastic_job_are_too_many(j: Journal) -> None:
    a = queued(j, annotations=ELASTIC)
    second = a.another_workload(replaces=a.workload.name)
    second.write()
    assert j.findings(until=5) == []
    a.another_workload(replaces=second.name).write()
    assert only(j.findings(until=5)).cause == "unrelated-slices"


def test_s1_a_workload_that_is_being_deleted_is_none_too_many(j: Journal) -> None:
    a = queued(j)
    begin_to_delete(a.workload)
    a.another_workload().write()
    assert j.findings(until=20) == []


def test_s2_a_job_made_again_under_the_same_name_has_a_workload_of_its_own(j: Journal) -> None:
    a = queued(j)
    a.gone()
    again = j.job("a", a.queue)
    again.workload.write()
    assert a.body["metadata"]["uid"] != again.body["metadata"]["uid"]
    assert j.findings(until=20) == []


def test_s3_a_finished_workload_is_enough(j: Journal) -> None:
    a = queued(j)
    a.state("Complete", "SUCCEEDED")
    a.workload.finish()
    assert j.findings(until=60) == []


def test_a_finished_workload_beside_an_unfinished_one_is_fine(j: Journal) -> None:
    a = queued(j)
    a.workload.finish("FailedToStart")
    a.another_workload().write()
    assert j.findings(until=60) == []


def test_a_finished_job_whose_workload_fell_to_retention_is_fine(j: Journal) -> None:
    a = queued(j)
    a.state("Complete", "SUCCEEDED")
    a.workload.finish()
    a.workload.gone()
    assert j.findings(until=60) == []


def waiting_for_kuberay(kueue: str) -> Journal:
    """S4: New for 8 s, Suspended, and a Workload 9 s later."""
    j = Journal("v1beta1", pair={**PAIR, "kueue": kueue}, about=(RULE,))
    a = j.at(0).job("a", j.queue())
    j.at(8)
    a.state("Suspended")
    j.at(17)
    a.workload.write()
    return j


def test_s4_up_to_kueue_0_10_a_job_gets_its_workload_once_it_is_suspended() -> None:
    assert waiting_for_kuberay("0.10.6").findings(until=60) == []
    assert only(waiting_for_kuberay("0.11.0").findings(until=60)).cause == "no-workload"


def test_a_job_that_is_still_active_is_waited_for(j: Journal) -> None:
    a = j.at(0).job("a", j.queue())
    a.state("Initializing")
    j.at(60)
    a.state("Suspended")
    j.at(69)
    a.workload.write()
    assert j.findings(until=90) == []


def test_s5_the_two_slices_of_a_scale_up_are_fine(j: Journal) -> None:
    a = queued(j, annotations=ELASTIC)
    a.workload.admit()
    bigger = a.another_workload(replaces=a.workload.name, counts={"workers": 2})
    bigger.admit()
    j.at(1)
    a.workload.finish("WorkloadSliceReplaced")
    assert j.findings(until=20) == []


def test_an_elastic_jobs_cluster_is_not_looked_at(j: Journal) -> None:
    a = queued(j, annotations=ELASTIC)
    child(a, "RayCluster", a.start_cluster())
    assert j.findings(until=20) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"clusterSelector": {"ray.io/cluster": "x"}},
        {"managedBy": "kueue.x-k8s.io/multikueue"},
        {"labelled": False},
    ],
    ids=["clusterSelector", "MultiKueue", "not queued"],
)
def test_a_job_that_kueue_leaves_alone_needs_no_workload(j: Journal, settings: dict[str, Any]) -> None:
    j.at(0).job("a", j.queue(), **settings)
    assert j.findings(until=60) == []


def test_a_job_with_a_prebuilt_workload_is_not_judged(j: Journal) -> None:
    a = j.at(0).job("a", j.queue(), labelled=False)
    labels = {"kueue.x-k8s.io/queue-name": "lq", "kueue.x-k8s.io/prebuilt-workload-name": "mine"}
    a.body["metadata"]["labels"] = labels
    a.state("")
    assert j.findings(until=60) == []


@pytest.mark.parametrize("namespace", ["kube-system", "kueue-system"])
def test_jobs_in_namespaces_that_kueue_never_manages_are_not_judged(j: Journal, namespace: str) -> None:
    body = {
        "metadata": {
            "name": "a",
            "namespace": namespace,
            "uid": "a-1",
            "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        },
        "spec": {"suspend": True},
    }
    j.at(0).emit("RayJob", body, "ADDED")
    assert j.findings(until=60) == []


def test_a_job_that_is_being_deleted_needs_no_workload(j: Journal) -> None:
    a = j.at(0).job("a", j.queue())
    j.at(5)
    a.terminate()
    assert j.findings(until=60) == []


@pytest.mark.parametrize(
    ("kueue", "groups", "cause"),
    [
        ("0.17.8", 6, "no-workload"),
        ("0.17.8", 7, "cannot-compose"),
        ("0.18.5", 8, "no-workload"),
        ("0.18.5", 9, "cannot-compose"),
        ("0.19.2", 16, "no-workload"),
        ("0.19.2", 17, "cannot-compose"),
        ("0.9.5", 7, "no-workload"),
    ],
)
def test_a_job_with_too_many_pod_sets_cannot_have_a_workload(kueue: str, groups: int, cause: str) -> None:
    j = Journal("v1beta1", pair={**PAIR, "kueue": kueue}, about=(RULE,))
    a = j.at(0).job("a", j.queue(), rayClusterSpec={"workerGroupSpecs": [{}] * groups})
    a.state("Suspended")
    assert only(j.findings(until=60)).cause == cause


def test_without_a_submitter_there_is_room_for_one_more_group(j: Journal) -> None:
    j.at(0).job("a", j.queue(), rayClusterSpec={"workerGroupSpecs": [{}] * 17}, submissionMode="HTTPMode")
    assert only(j.findings(until=60)).cause == "no-workload"


def test_a_job_keeps_needing_a_workload_after_its_label_was_removed(j: Journal) -> None:
    a = j.at(0).job("a", j.queue())
    j.at(1)
    del a.body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
    a.state("")
    assert only(j.findings(until=15)).seconds == (15.0, 15.0)


def test_a_job_whose_pods_bear_kueues_labels_needs_a_workload_from_then_on(j: Journal) -> None:
    a = j.at(0).job("a", j.queue(), labelled=False)
    j.at(5)
    a.pod("head")
    assert only(j.findings(until=20)).seconds == (15.0, 15.0)


def test_a_workload_that_is_being_deleted_is_none(j: Journal) -> None:
    a = queued(j)
    j.at(1)
    begin_to_delete(a.workload)
    assert only(j.findings(until=20)).seconds == (19.0, 19.0)


def ray_cluster(j: Journal, **metadata: Any) -> None:
    body = {"metadata": {"name": "c", "namespace": NAMESPACE, "uid": "c-1", **metadata}, "spec": {"suspend": True}}
    j.emit("RayCluster", body, "ADDED")


def test_a_queued_ray_cluster_is_a_job_like_any_other(j: Journal) -> None:
    j.queue()
    ray_cluster(j.at(0), labels={"kueue.x-k8s.io/queue-name": "lq"})
    assert only(j.findings(until=15)).objects[0].kind == "RayCluster"


def test_a_cluster_that_something_else_controls_gets_its_quota_there(j: Journal) -> None:
    owner = {"kind": "RayService", "name": "s", "uid": "s-1", "controller": True}
    ray_cluster(j.at(0), labels={"kueue.x-k8s.io/queue-name": "lq"}, ownerReferences=[owner])
    assert j.findings(until=60) == []


@pytest.mark.parametrize("controller", ["kueue", "kuberay"])
def test_time_in_which_a_controller_is_down_or_warms_up_does_not_count(j: Journal, controller: str) -> None:
    a = j.at(0).job("a", j.queue())
    j.at(4).marker(f"{controller}-down")
    j.at(60).marker(f"{controller}-up")
    assert owed(j, until=65) == [(RULE, "RayJob team-ns/a has no Workload yet", 76.0)]
    j.at(76)
    assert j.findings(until=76) == []
    assert [f.cause for f in j.findings(until=76.5)] == ["no-workload"]
    a.workload.write()
    assert j.findings(until=90) == []


def test_a_test_waits_for_a_workload_only_while_there_is_none(j: Journal) -> None:
    a = j.at(0).job("a", j.queue())
    assert owed(j, until=3) == [(RULE, "RayJob team-ns/a has no Workload yet", 10.0)]
    assert owed(j, until=11) == []
    j.at(4)
    a.workload.write()
    assert owed(j, until=5) == []


def test_nothing_is_waited_for_while_a_controller_is_down(j: Journal) -> None:
    j.at(0).job("a", j.queue())
    j.at(1).marker("kueue-down")
    assert owed(j, until=60) == []
    assert j.findings(until=60) == []


def test_a_forgotten_scope_leaves_nothing_behind(j: Journal) -> None:
    a = queued(j)
    j.job("b", a.queue)
    a.another_workload().write()
    child(a, "RayCluster", a.start_cluster())
    ledger = j.ledger(until=20)
    assert {f.cause for f in ledger.findings(SCOPE)} >= {"two-workloads", "child-workload", "no-workload"}
    ledger.forget(SCOPE)
    (rule,) = (rule for rule in ledger._rules if isinstance(rule, OneWorkload))
    assert not rule._episodes._open
    assert not rule._episodes._late


def test_the_index_of_workloads_is_empty_when_they_are_gone(j: Journal) -> None:
    a = queued(j)
    second = a.another_workload()
    second.write()
    a.workload.gone()
    books = j.ledger(until=1)._books
    assert [w["metadata"]["name"] for w in books.workloads(a.body["metadata"]["uid"])] == ["rayjob-a-2"]
    second.gone()
    books = j.ledger(until=1)._books
    assert not books._workloads._of
    assert not books._workloads._owner
