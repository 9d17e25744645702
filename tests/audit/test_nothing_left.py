from __future__ import annotations

from typing import Any

import pytest

from raykueue.audit.rules.nothing_left import NothingLeft
from raykueue.audit.scope import Scope
from raykueue.model.events import Barrier
from raykueue.model.findings import Finding
from tests.audit.journals import EPOCH, NAMESPACE, Job, Journal, Json

SCOPE = Scope(frozenset({NAMESPACE}), frozenset({"cq"}))
FT: dict[str, Any] = {"rayClusterSpec": {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}}


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param, about=("nothing-left",))


def running(j: Journal, name: str = "a", **settings: Any) -> Job:
    """Admitted, with a cluster, and no pod so far."""
    a = j.at(-20).job(name, j.queue(cpu=30), **settings)
    a.workload.admit()
    a.suspend(False)
    a.start_cluster()
    return a


def deleted(j: Journal, a: Job, *, but: str = "") -> None:
    """J- at 0, and everything of it 1 s later, but one kind."""
    j.at(0)
    a.gone()
    j.at(1)
    if but != "RayCluster":
        a.stop_cluster()
    if but != "Workload":
        a.workload.gone()


def service(a: Job, owner: Json, kind: str) -> Json:
    body = a.owned("Service", f"{owner['metadata']['name']}-head-svc", owner, kind)
    a.j.emit("Service", body, "ADDED")
    return body


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [f.text for f in findings]
    return findings[0]


def owed(j: Journal, until: float) -> list[tuple[str, float | None]]:
    found = [o for o in j.ledger(until).obligations(SCOPE) if o.rule == "nothing-left"]
    return [(o.text, None if o.until is None else (o.until - EPOCH) / 1e9) for o in found]


def test_f1_a_cluster_that_is_still_there_is_found(j: Journal) -> None:
    a = running(j)
    deleted(j, a, but="RayCluster")
    found = only(j.findings(until=20))
    assert (found.cause, found.klass) == ("left-behind", "invariant")
    assert found.begin.t == EPOCH + 10 * 10**9
    assert found.end is None
    assert found.seconds == (10.0, 10.0)
    assert found.peak == {"objects": 1}
    assert found.resource_seconds == {"objects": 10.0}
    assert found.namespace == NAMESPACE
    assert [r.kind for r in found.objects] == ["RayJob", "RayCluster"]
    assert "RayCluster a-00001 still there, though its owner is gone 20.0 s after its deletion" in found.text


def test_f2_a_workload_that_stays_and_holds_is_found(j: Journal) -> None:
    a = running(j)
    deleted(j, a, but="Workload")
    j.at(25)
    a.workload.gone()
    found = only(j.findings(until=40))
    assert (found.cause, found.klass) == ("holds-quota", "contract")
    assert found.begin.t == EPOCH + 5 * 10**9
    assert found.seconds == (20.0, 20.0)
    assert found.peak == {"cpu": 2500}
    assert found.resource_seconds == {"cpu": 50000.0}
    assert found.cluster_queue == "cq"
    assert "Workload rayjob-a-1 still holds quota 2.5 CPU 25.0 s after its deletion" in found.text


def test_a_workload_that_stays_without_quota_is_found_later(j: Journal) -> None:
    a = running(j)
    deleted(j, a, but="Workload")
    a.workload.finish("OwnerNotFound")
    assert j.findings(until=10) == []
    found = only(j.findings(until=11))
    assert (found.cause, found.klass) == ("workload-left", "contract")


def test_f3_a_head_service_that_stays_is_found(j: Journal) -> None:
    a = running(j)
    own = service(a, a.body, "RayJob")
    assert a.cluster is not None
    of_cluster = service(a, a.cluster, "RayCluster")
    deleted(j, a)
    assert len(only(j.findings(until=20)).objects) == 3
    j.emit("Service", of_cluster, "DELETED")
    found = only(j.findings(until=20))
    assert [r.name for r in found.objects] == ["a", "a-head-svc"]
    j.at(15)
    j.emit("Service", own, "DELETED")
    assert only(j.findings(until=20)).seconds == (5.0, 5.0)


def test_f4_a_pod_without_an_owner_is_found_by_its_label(j: Journal) -> None:
    a = running(j)
    a.body["status"]["rayClusterName"] = "a-00001"
    a.state("Running")
    pod = a.pod("head", grace=0)
    del pod.body["metadata"]["ownerReferences"]
    pod.body["metadata"]["uid"] = "nobodys"
    j.records.pop()
    j.emit("Pod", pod.body, "ADDED")
    deleted(j, a)
    found = only(j.findings(until=20))
    assert (found.cause, found.klass) == ("no-owner", "contract")
    assert [r.uid for r in found.objects][1:] == ["nobodys"]


@pytest.mark.parametrize("kind", ["ServiceAccount", "Role", "RoleBinding", "Job", "Pod"])
def test_every_kind_that_descends_from_the_job_is_looked_for(j: Journal, kind: str) -> None:
    a = running(j)
    assert a.cluster is not None
    body = a.owned(kind, "autoscaler", a.cluster, "RayCluster")
    j.emit(kind, body, "ADDED")
    deleted(j, a)
    grace = 30 if kind == "Pod" else 0
    assert [r.kind for r in only(j.findings(until=30 + grace)).objects] == ["RayJob", kind]


def test_grandchildren_are_found_through_owners_that_are_gone(j: Journal) -> None:
    a = running(j)
    submitter = a.pod("submitter", grace=0)
    j.at(0)
    assert a.submitter is not None
    j.emit("Job", a.submitter, "DELETED")
    deleted(j, a)
    found = only(j.findings(until=20))
    assert [r.uid for r in found.objects][1:] == [submitter.uid]


def test_what_is_made_after_everything_was_gone_is_found(j: Journal) -> None:
    a = running(j)
    cluster = a.cluster
    assert cluster is not None
    deleted(j, a)
    late = a.owned("Pod", "late", cluster, "RayCluster")
    j.emit("Pod", late, "ADDED")  # its owner is gone altogether: no chain leads to the job any more
    other = a.owned("Service", "late-svc", a.body, "RayJob")
    j.emit("Service", other, "ADDED")
    assert [r.name for r in only(j.findings(until=20)).objects] == ["a", "late-svc"]


def test_what_is_left_of_two_causes_is_two_findings_and_each_ends_by_itself(j: Journal) -> None:
    a = running(j)
    j.at(0)
    a.gone()
    j.at(12)
    a.stop_cluster()
    j.at(17)
    a.workload.gone()
    found = {f.cause: f.seconds[0] for f in j.findings(until=30)}
    assert found == {"left-behind": 2.0, "holds-quota": 12.0}


@pytest.mark.parametrize(
    ("but", "cause", "bound"), [("RayCluster", "left-behind", 10.0), ("Workload", "holds-quota", 5.0)]
)
def test_it_is_silent_up_to_its_bound_and_fires_above_it(j: Journal, but: str, cause: str, bound: float) -> None:
    a = running(j)
    deleted(j, a, but=but)
    assert j.findings(until=bound) == []
    assert only(j.findings(until=bound + 0.001)).cause == cause
    assert bound in [until for _, until in owed(j, until=2)]
    assert owed(j, until=10.001) == []


@pytest.mark.parametrize(
    ("settings", "grace", "bound"), [({}, 0, 10.0), ({}, 90, 100.0), (FT, 0, 340.0), (FT, 30, 370.0)]
)
def test_the_bound_grows_with_grace_and_fault_tolerance(
    j: Journal, settings: dict[str, Any], grace: int, bound: float
) -> None:
    a = running(j, **settings)
    pod = a.pod("head", grace=grace)
    deleted(j, a)
    j.at(bound)
    assert j.findings(until=bound) == []
    assert [r.uid for r in only(j.findings(until=bound + 0.1)).objects][1:] == [pod.uid]
    pod.gone()
    assert j.findings(until=bound + 0.1) == []


def test_s1_a_cluster_that_cleans_redis_up_first_is_fine(j: Journal) -> None:
    a = running(j, **FT)
    j.at(0)
    a.gone()
    a.workload.gone()
    cleanup = a.owned("Job", "redis-cleanup", a.cluster or {}, "RayCluster")
    j.emit("Job", cleanup, "ADDED")
    j.at(120)
    j.emit("Job", cleanup, "DELETED")
    a.stop_cluster()
    assert j.findings(until=500) == []


def test_s2_a_pod_with_a_long_grace_is_fine(j: Journal) -> None:
    a = running(j)
    pod = a.pod("head", grace=90)
    deleted(j, a)
    pod.terminate()
    j.at(95)
    pod.gone()
    assert j.findings(until=200) == []


def test_s3_what_a_successor_of_the_same_name_has_is_fine(j: Journal) -> None:
    a = running(j)
    a.pod("head", grace=0).gone()
    deleted(j, a)
    j.at(2)
    b = j.job("a", a.queue)
    b.workload.admit()
    b.suspend(False)
    b.start_cluster()
    b.pod("head")
    service(b, b.body, "RayJob")
    assert j.findings(until=100) == []


def test_s4_an_ordinary_end_is_fine_and_nothing_is_owed_after_it(j: Journal) -> None:
    a = running(j)
    pods = a.start()
    own = service(a, a.body, "RayJob")
    j.at(0)
    a.gone()
    a.workload.gone(arrives=0.3)
    a.stop_cluster()
    j.emit("Job", a.submitter or {}, "DELETED")
    j.emit("Service", own, "DELETED")
    for pod in pods:
        pod.terminate()
    j.at(2)
    (text, until) = owed(j, until=2)[0]
    assert until == 40.0
    assert "RayJob team-ns/a was deleted: Pod a-head-1, Pod a-submitter-1, Pod a-workers-1 still there" in text
    for pod in pods:
        pod.gone()
    assert owed(j, until=2) == []
    assert j.findings(until=100) == []


def test_what_is_orphaned_on_purpose_is_fine_unless_it_holds_quota(j: Journal) -> None:
    a = running(j)
    a.pod("head", grace=0)
    j.at(0)
    a.body["metadata"]["finalizers"] = ["orphan"]
    a.terminate()
    assert a.cluster is not None
    for kind, body in (("RayCluster", a.cluster), ("Workload", a.workload.body)):
        body["metadata"]["labels"] = {**body["metadata"].get("labels", {}), "kueue.x-k8s.io/job-uid": "rayjob-a-0002"}
        del body["metadata"]["ownerReferences"]
        j.emit(kind, body)
    a.gone()
    assert only(j.findings(until=100)).cause == "holds-quota"
    a.workload.finish("OwnerNotFound")
    assert j.findings(until=100) == []
    assert owed(j, until=3) == []


def test_what_a_foreign_finalizer_keeps_is_fine_as_long_as_it_does(j: Journal) -> None:
    a = running(j)
    pod = a.pod("head", grace=0)
    pod.body["metadata"]["finalizers"] = ["example.com/mine"]
    pod.terminate()
    deleted(j, a)
    assert j.findings(until=50) == []
    j.at(60)
    pod.body["metadata"]["finalizers"] = ["batch.kubernetes.io/job-tracking"]
    pod.terminate()
    assert only(j.findings(until=70)).seconds == (10.0, 10.0)


def test_a_job_whose_deletion_hangs_is_found(j: Journal) -> None:
    a = running(j)
    j.at(0)
    a.body["metadata"]["finalizers"] = ["ray.io/rayjob-finalizer"]
    a.terminate()
    assert j.findings(until=60) == []
    assert owed(j, until=60) == [("RayJob team-ns/a was deleted: RayJob a still there", 60.0)]
    found = only(j.findings(until=60.001))
    assert (found.cause, found.klass) == ("stuck-deleting", "hazard")
    j.at(75)
    a.gone()
    a.stop_cluster()
    a.workload.gone()
    found = only(j.findings(until=100))
    assert found.seconds == (15.0, 15.0)
    assert "its deletion was asked for, and it is still there 75.0 s after its deletion" in found.text


@pytest.mark.parametrize(("finalizer", "bound"), [("foregroundDeletion", 100.0), ("example.com/mine", None)])
def test_a_job_may_wait_for_its_descendants_and_for_a_foreign_finalizer(
    j: Journal, finalizer: str, bound: float | None
) -> None:
    a = running(j)
    a.pod("head", grace=90)
    j.at(0)
    a.body["metadata"]["finalizers"] = [finalizer]
    a.terminate()
    assert j.findings(until=bound or 500) == []
    if bound:
        assert only(j.findings(until=bound + 1)).cause == "stuck-deleting"


@pytest.mark.parametrize("controller", ["kueue", "kuberay"])
def test_time_in_which_a_controller_is_dead_does_not_count(j: Journal, controller: str) -> None:
    a = running(j)
    j.at(-1).marker(f"{controller}-down")
    deleted(j, a, but="Workload")
    assert [until for _, until in owed(j, until=30)] == [None, None]
    j.at(50).marker(f"{controller}-up")
    assert j.findings(until=65) == []  # up at 50, warm at 60, and 5 s
    assert only(j.findings(until=66)).cause == "holds-quota"


def test_jobs_that_kueue_does_not_manage_and_other_objects_are_not_judged(j: Journal) -> None:
    a = j.at(-20).job("a", j.queue(), labelled=False)
    a.start_cluster()
    stranger = a.owned("Pod", "web", {"metadata": {"name": "web", "uid": "replica-set"}}, "ReplicaSet")
    j.emit("Pod", stranger, "ADDED")
    j.at(0)
    a.gone()
    assert j.findings(until=100) == []


def test_forgetting_a_scope_leaves_nothing() -> None:
    j = Journal(about=("nothing-left",))
    a, b = running(j), running(j, "b")
    deleted(j, a, but="RayCluster")
    b.terminate()
    ledger = j.ledger(until=20)
    assert len([f for f in ledger.findings(SCOPE) if f.rule == "nothing-left"]) == 1
    ledger.forget(SCOPE)
    (rule,) = [r for r in ledger._rules if isinstance(r, NothingLeft)]
    tree = rule._lineage
    assert (rule._found, rule._watched, len(rule._deadlines)) == ([], {}, 0)
    assert (tree._all, tree._by_namespace, tree._clusters) == ({}, {}, {})
    b.gone()
    ledger.add(j.records[-1])
    ledger.fold(Barrier(j.rev, EPOCH + 100 * 10**9))
    assert tree._all == {}


def test_a_job_that_is_gone_with_all_of_its_own_leaves_nothing() -> None:
    j = Journal(about=("nothing-left",))
    a = running(j)
    deleted(j, a)
    (rule,) = [r for r in j.ledger(until=20)._rules if isinstance(r, NothingLeft)]
    tree = rule._lineage
    assert (rule._watched, tree._all, tree._by_namespace, tree._clusters) == ({}, {}, {}, {})
