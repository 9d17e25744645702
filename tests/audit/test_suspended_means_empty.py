from __future__ import annotations

from typing import Any

import pytest

from raykueue.audit.rules.suspended_means_empty import SuspendedMeansEmpty
from tests.audit.journals import NAMESPACE, Journal
from tests.audit.suspended import RULE, SCOPE, causes, held_while_suspended, only, owed, queued, running, unqueued


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param, about=(RULE,))


# -- 7a: suspended in status, no pods


def test_f2_a_pod_of_a_suspended_job_whose_quota_is_still_held(j: Journal) -> None:
    a, _ = held_while_suspended(j)
    found = only(j.findings(until=10))
    assert (found.cause, found.klass, found.seconds) == ("pods-still-paid", "hazard", (10.0, 10.0))
    assert found.peak == {"cpu": 1000}
    assert found.resource_seconds == {"cpu": 10_000.0}
    assert found.end is None
    assert [r.kind for r in found.objects] == ["RayJob", "Pod", "Workload"]
    assert "RayJob team-ns/a is suspended, but pods a-head-1 (1 CPU) live on for 10000 ms" in found.text
    j.at(12)
    a.workload.release()
    found = only(j.findings(until=20))
    assert found.seconds == (12.0, 12.0)
    assert found.end is not None


@pytest.mark.parametrize(("late", "fires"), [(5.0, False), (5.001, True)])
@pytest.mark.parametrize("end", ["release", "gone", "resumed", "deleted"])
def test_a_suspended_job_may_keep_pods_and_quota_for_five_seconds(
    j: Journal, late: float, fires: bool, end: str
) -> None:
    a, head = held_while_suspended(j)
    j.at(late)
    match end:
        case "release":
            a.workload.release()
        case "gone":
            head.gone()
        case "resumed":
            a.state("")
        case "deleted":
            a.terminate()
    assert [c for c in causes(j.findings(until=9)) if c == "pods-still-paid"] == ["pods-still-paid"] * fires


def test_the_window_counts_every_pod_while_it_lives(j: Journal) -> None:
    a = running(j)
    head, worker = a.pod("head"), a.pod("workers")
    j.at(0)
    a.suspend(True)
    a.state("Suspended")
    j.at(2)
    worker.end("Failed")
    late = a.pod("head", "2", cpu=3)
    j.at(6)
    head.gone()
    late.gone()
    found = only(j.findings(until=10))
    assert found.seconds == (6.0, 6.0)
    assert found.peak == {"cpu": 4000}
    assert found.resource_seconds == {"cpu": 2 * 2000.0 + 4 * 4000.0}


def test_a_pod_that_ends_counts_no_longer(j: Journal) -> None:
    a = running(j)
    a.pod("head")
    worker = a.pod("workers")
    j.at(0)
    a.suspend(True)
    a.state("Suspended")
    j.at(2)
    worker.gone()
    found = only(j.findings(until=10))
    assert found.resource_seconds == {"cpu": 2 * 2000.0 + 8 * 1000.0}


def test_f4_a_pod_of_a_suspended_job_that_nobody_pays_for(j: Journal) -> None:
    a, _ = unqueued(j)
    j.at(0)
    a.suspend(True)
    a.state("Suspended")
    found = only(j.findings(until=40))
    assert (found.cause, found.klass, found.payer) == ("pods-never-paid", "hazard", "")
    assert found.seconds == (40.0, 40.0)
    assert "allowed: 10 s" in found.text


@pytest.mark.parametrize(("late", "fires"), [(10.0, False), (10.001, True)])
def test_such_a_pod_may_live_for_its_grace_and_the_garbage_collection(j: Journal, late: float, fires: bool) -> None:
    a, head = unqueued(j)
    j.at(0)
    a.suspend(True)
    a.state("Suspended")
    head.terminate()
    j.at(late)
    head.gone()
    assert causes(j.findings(until=60)) == ["pods-never-paid"] * fires


def test_a_pod_born_while_its_job_is_suspended_counts_from_its_birth(j: Journal) -> None:
    a, head = unqueued(j)
    head.gone()
    a.suspend(True)
    a.state("Suspended")
    j.at(0)
    a.pod("workers", grace=5, labels={"ray.io/node-type": "worker", "ray.io/group": "workers"})
    found = only(j.findings(until=30))
    assert found.seconds == (30.0, 30.0)


def test_pods_of_a_managed_job_that_never_had_quota_are_pods_covereds_matter() -> None:
    j = Journal()
    a = queued(j)
    a.pod("head")
    assert {(f.rule, f.cause) for f in j.findings(until=60)} == {("pods-covered", "never-charged")}


def test_a_job_that_comes_to_be_managed_leaves_its_unpaid_pods_to_pods_covered(j: Journal) -> None:
    a, _ = unqueued(j)
    j.at(0)
    a.suspend(True)
    a.state("Suspended")
    j.at(8)
    a.body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "lq"
    a.state("Suspended")
    assert j.findings(until=60) == []


def test_s3_pods_that_ended_are_none(j: Journal) -> None:
    a = running(j)
    a.pod("head").end("Failed")
    a.suspend(True)
    a.state("Suspended")
    assert causes(j.findings(until=60)) == []


def test_gated_pods_of_a_suspended_job_use_nothing(j: Journal) -> None:
    a = running(j)
    a.pod("head", gated=True)
    a.suspend(True)
    a.state("Suspended")
    assert j.findings(until=60) == []


def test_s4_pods_that_terminate_after_the_release_are_no_survivors_matter(j: Journal) -> None:
    a, head = held_while_suspended(j)
    head.terminate()
    j.at(0.2)
    a.workload.release()
    assert j.findings(until=90) == []
    everything = Journal(j.version)
    everything.records, everything.rev = j.records, j.rev
    assert {f.rule for f in everything.findings(until=90)} == {"no-survivors"}


def test_old_pods_of_a_job_that_was_admitted_again_are_no_survivors_matter(j: Journal) -> None:
    a, _ = held_while_suspended(j)
    a.workload.release()
    a.workload.admit()
    assert j.findings(until=60) == []


def test_a_suspended_cluster_that_is_a_job_of_its_own_has_no_pods_either(j: Journal) -> None:
    body: dict[str, Any] = {
        "metadata": {"name": "c", "namespace": NAMESPACE, "uid": "c-1", "labels": {}},
        "spec": {"suspend": True},
        "status": {"state": "suspended"},
    }
    stub = j.at(0).job("unrelated", j.queue(), labelled=False)
    stub.gone()
    j.emit("RayCluster", body, "ADDED")
    stub.pod("head", labels={"ray.io/node-type": "head"}, owner=(body, "RayCluster"), grace=5)
    found = only(j.findings(until=20))
    assert (found.cause, found.objects[0].kind) == ("pods-never-paid", "RayCluster")


@pytest.mark.parametrize(
    "settings",
    [{"clusterSelector": {"ray.io/cluster": "x"}}, {"managedBy": "kueue.x-k8s.io/multikueue"}],
    ids=["clusterSelector", "MultiKueue"],
)
def test_a_job_that_kueue_skips_by_design_is_not_judged(j: Journal, settings: dict[str, Any]) -> None:
    a = queued(j, **settings)
    a.pod("head")
    a.state("Running")
    assert j.findings(until=60) == []


# -- what all parts share


@pytest.mark.parametrize("controller", ["kueue", "kuberay"])
def test_time_in_which_a_controller_is_down_or_warms_up_does_not_count(j: Journal, controller: str) -> None:
    a = running(j)
    j.at(0)
    a.suspend(True)
    j.at(4).marker(f"{controller}-down")
    j.at(100).marker(f"{controller}-up")
    j.at(136)
    assert j.findings(until=136) == []
    assert causes(j.findings(until=136.5)) == ["not-suspended"]
    assert owed(j, until=50) != owed(j, until=136)
    assert owed(j, until=136) == [("RayJob team-ns/a is not suspended, though spec.suspend is true", 136.0)]


def test_a_test_waits_only_while_something_is_really_open(j: Journal) -> None:
    a = running(j)
    head = a.pod("head")
    assert owed(j, until=0) == []
    j.at(0)
    a.workload.evict()
    a.suspend(True)
    assert owed(j, until=1) == [("RayJob team-ns/a is not suspended, though spec.suspend is true", 30.0)]
    j.at(2)
    a.state("Suspended")
    text = "RayJob team-ns/a is suspended, but pods a-head-1 (1 CPU) live on"
    assert owed(j, until=3) == [(text, 7.0)]
    j.at(4)
    a.workload.release()
    assert owed(j, until=5) == []
    a.suspend(False)
    assert owed(j, until=5) == [("RayJob team-ns/a is not suspended, though Workload rayjob-a-1 is not admitted", 9.0)]
    a.workload.admit()
    assert owed(j, until=5) == []
    head.gone()
    assert j.findings(until=60) == []


def test_a_finding_that_is_there_is_waited_for_no_longer(j: Journal) -> None:
    a = running(j)
    j.at(0)
    a.suspend(True)
    assert len(j.findings(until=31)) == 1
    assert owed(j, until=31) == []


def test_a_forgotten_scope_leaves_nothing_behind(j: Journal) -> None:
    a, head = held_while_suspended(j)
    unpaid = j.job("b", a.queue, labelled=False)
    unpaid.state("Suspended")
    unpaid.pod("head", grace=1, labels={"ray.io/node-type": "head"})
    j.job("c", a.queue)
    d = j.job("d", a.queue)
    d.workload.write()
    d.suspend(False)
    ledger = j.ledger(until=60)
    found = [f.cause for f in ledger.findings(SCOPE) if f.rule == RULE]
    assert sorted(found) == ["not-admitted", "not-suspended", "pods-never-paid", "pods-still-paid"]
    ledger.forget(SCOPE)
    (rule,) = (rule for rule in ledger._rules if isinstance(rule, SuspendedMeansEmpty))
    assert [rule._places, rule._asked, rule._total, rule._episodes._open, rule._episodes._late] == [{}, {}, {}, {}, []]
    head.gone()


def test_pods_that_are_gone_leave_nothing_behind(j: Journal) -> None:
    _, head = held_while_suspended(j)
    head.gone()
    ledger = j.ledger(until=60)
    (rule,) = (rule for rule in ledger._rules if isinstance(rule, SuspendedMeansEmpty))
    assert [rule._places, rule._asked, rule._total, rule._episodes._open] == [{}, {}, {}, {}]
