from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from raykueue.audit.rules.placed_as_assigned import PlacedAsAssigned
from raykueue.audit.scope import Scope
from raykueue.model.events import Barrier, Event
from raykueue.model.findings import Finding
from tests.audit.journals import EPOCH, NAMESPACE, Job, Journal, Json

SCOPE = Scope(frozenset({NAMESPACE}), frozenset({"cq"}), frozenset({"default", "spot", "a", "b"}))
TAINT: Json = {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
SPOT = {"instance": "spot"}


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param, about=("placed-as-assigned",))


def admitted(j: Journal, flavor: str = "spot", **settings: Any) -> Job:
    a = j.at(0).job("a", j.queue(flavors={f: {"cpu": 30} for f in ("spot", "a", "b")}), **settings)
    a.workload.admit(flavor=flavor)
    a.suspend(False)
    return a


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [f.text for f in findings]
    return findings[0]


def test_f1_a_submitter_without_its_flavors_selector_is_found(j: Journal) -> None:
    j.flavor("spot", instance="spot")
    a = admitted(j)
    j.at(1)
    a.pod("head", nodeSelector=SPOT)
    submitter = a.pod("submitter", node="")
    j.at(3)
    submitter.bind("node-7")
    j.at(6)
    submitter.end()
    found = only(j.findings(until=10))
    assert (found.cause, found.klass) == ("selector-missing", "contract")
    assert found.peak == {"cpu": 500, "pods": 1}
    assert found.seconds == (5.0, 5.0)
    assert found.resource_seconds == {"cpu": 2500.0, "pods": 5.0}
    assert found.payer == f"{a.workload.uid}#1"
    assert [r.kind for r in found.objects] == ["RayJob", "Workload", "Pod"]
    assert "pod a-submitter-1 of PodSet submitter for 5000 ms: selects no instance, bound to node-7" in found.text
    assert "0.5 CPU booked on flavor spot" in found.text


def test_f2_a_toleration_that_is_missing_is_found_though_the_pod_never_runs(j: Journal) -> None:
    j.flavor("spot", [TAINT], instance="spot")
    a = admitted(j)
    a.pod("head", node="", nodeSelector=SPOT)
    found = only(j.findings(until=100))
    assert (found.cause, found.end) == ("toleration-missing", None)
    assert found.seconds == (100.0, 100.0)
    assert "tolerates no spot=true:NoSchedule" in found.text


def test_f3_a_head_that_carries_the_labels_of_the_earlier_flavor_is_found(j: Journal) -> None:
    for name in "ab":
        j.flavor(name, pool=name)
    a = admitted(j, "a")
    a.pod("head", nodeSelector={"pool": "a"}).gone()
    a.workload.release()
    a.suspend(True)
    a.stop_cluster()
    j.at(5)
    a.workload.admit(flavor="b")
    a.suspend(False)
    a.pod("head", "2", nodeSelector={"pool": "a"})
    found = only(j.findings(until=10))
    assert (found.cause, found.payer) == ("selector-differs", f"{a.workload.uid}#2")
    assert "selects pool=a" in found.text


def test_f4_a_node_without_the_flavors_label_is_found_at_binding(j: Journal) -> None:
    j.flavor("spot", instance="spot")
    j.node("node-1", instance="on-demand")
    a = admitted(j)
    head = a.pod("head", node="", nodeSelector=SPOT)
    j.at(2)
    head.bind("node-1")
    found = only(j.findings(until=10))
    assert (found.cause, found.klass) == ("wrong-node", "invariant")
    assert found.begin.t == EPOCH + 2 * 10**9
    assert "node node-1 has instance=on-demand" in found.text


def test_pods_of_one_pod_set_that_are_wrong_in_one_way_are_one_finding(j: Journal) -> None:
    j.flavor("spot", [TAINT], instance="spot")
    a = admitted(j, counts={"workers": 3})
    workers = [a.pod("workers", str(n)) for n in range(3)]
    j.at(4)
    workers[0].gone()
    j.at(8)
    for pod in workers[1:]:
        pod.gone()
    found = only(j.findings(until=10))
    assert found.cause == "selector-missing"
    assert found.peak == {"cpu": 3000, "pods": 3}
    assert found.resource_seconds == {"cpu": 4 * 3000.0 + 4 * 2000.0, "pods": 4 * 3.0 + 4 * 2.0}
    assert "tolerates no spot" in found.text


def test_pods_that_come_after_all_wrong_ones_are_gone_are_another_finding(j: Journal) -> None:
    j.flavor("spot", instance="spot")
    a = admitted(j)
    a.pod("workers", "1").gone()
    a.pod("workers", "2")
    assert len(j.findings(until=5)) == 2


def test_a_gated_pod_is_judged_like_any_other(j: Journal) -> None:
    j.flavor("spot", instance="spot")
    a = admitted(j)
    pod = a.pod("workers", gated=True)
    j.at(3)
    pod.ungate()
    j.at(5)
    pod.gone()
    found = only(j.findings(until=10))
    assert (found.seconds, found.resource_seconds) == ((5.0, 5.0), {"cpu": 2000.0, "pods": 2.0})


@pytest.mark.parametrize(
    ("selector", "tolerations", "cause"),
    [
        ({"instance": "spot", "zone": "x"}, [TAINT, {"key": "mine", "operator": "Exists"}], ""),  # the user's own
        ({"instance": "spot"}, [{"key": "spot", "value": "true", "effect": "NoSchedule"}], ""),  # Equal is the default
        ({"instance": "spot"}, [{**TAINT, "value": "false"}], "toleration-missing"),
        ({"instance": "spot"}, [{**TAINT, "operator": "Exists", "value": ""}], "toleration-missing"),
        ({"instance": "spot"}, [{**TAINT, "effect": "NoExecute"}], "toleration-missing"),
        ({"instance": "spot"}, [{**TAINT, "tolerationSeconds": 5}], "toleration-missing"),
        ({"instance": "Spot"}, [TAINT], "selector-differs"),
    ],
)
def test_labels_and_tolerations_are_compared_as_a_whole(
    selector: dict[str, str], tolerations: list[Json], cause: str
) -> None:
    j = Journal(about=("placed-as-assigned",))
    j.flavor("spot", [TAINT], instance="spot")
    admitted(j).pod("head", nodeSelector=selector, tolerations=tolerations)
    assert [f.cause for f in j.findings(until=5)] == ([cause] if cause else [])


def affinity(*values: str) -> Json:
    terms = [{"matchExpressions": [{"key": "instance", "operator": "In", "values": [v]}]} for v in values]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def test_a_required_affinity_stands_in_for_the_selector_if_it_leaves_no_other_node(j: Journal) -> None:
    j.flavor("spot", instance="spot")
    a = admitted(j)
    a.pod("head", affinity=affinity("spot"))
    assert j.findings(until=5) == []
    a.pod("workers", affinity=affinity("spot", "on-demand"))
    assert only(j.findings(until=5)).cause == "selector-missing"


def test_s1_a_selector_that_the_user_had_already_is_fine(j: Journal) -> None:
    j.flavor("spot", instance="spot")
    admitted(j).pod("head", nodeSelector={**SPOT, "mine": "yes"})
    assert j.findings(until=5) == []


def test_s2_old_pods_of_the_earlier_flavor_are_fine_while_the_next_hold_is_on_another(j: Journal) -> None:
    for name in "ab":
        j.flavor(name, pool=name)
        j.node(f"node-{name}", pool=name)
    a = admitted(j, "a")
    old = a.pod("head", node="node-a", nodeSelector={"pool": "a"})
    old.terminate()
    a.workload.release()
    a.stop_cluster()
    a.suspend(True)
    a.workload.admit(flavor="b")
    a.suspend(False)
    a.pod("head", "2", node="node-b", nodeSelector={"pool": "b"})
    j.at(9)
    old.gone()
    assert j.findings(until=10) == []


def test_s3_two_resource_groups_ask_for_the_labels_of_both_flavors(j: Journal) -> None:
    j.flavor("a", cpu="fast")
    j.flavor("b", [TAINT], gpu="big")
    a = admitted(j, "a")
    for one in a.workload.body["status"]["admission"]["podSetAssignments"]:
        one["flavors"]["gpu"] = "b"
        one["resourceUsage"]["gpu"] = "1"
    a.workload.write()
    a.suspend(True)
    a.suspend(False)
    a.pod("head", nodeSelector={"cpu": "fast", "gpu": "big"}, tolerations=[TAINT])
    assert j.findings(until=5) == []
    a.pod("workers", nodeSelector={"cpu": "fast"}, tolerations=[TAINT])
    found = only(j.findings(until=5))
    assert "selects no gpu" in found.text
    assert "flavor a and b" in found.text


def test_a_label_on_which_two_flavors_disagree_may_be_either(j: Journal) -> None:
    j.flavor("a", zone="x")
    j.flavor("b", zone="y")
    a = admitted(j, "a")
    a.workload.body["status"]["admission"]["podSetAssignments"][0]["flavors"]["gpu"] = "b"
    a.workload.write()
    a.suspend(True)
    a.suspend(False)
    a.pod("head", nodeSelector={"zone": "y"})
    assert j.findings(until=5) == []


def test_s4_a_node_that_is_relabelled_after_binding_is_fine(j: Journal) -> None:
    j.flavor("spot", instance="spot")
    node = j.node("node-1", instance="spot")
    a = admitted(j)
    a.pod("head", nodeSelector=SPOT)
    j.at(2)
    node.relabel()
    assert j.findings(until=5) == []
    j.at(3.1)
    a.pod("workers", nodeSelector=SPOT)
    assert only(j.findings(until=5)).cause == "wrong-node"


@pytest.mark.parametrize(("pause", "causes"), [(1.0, []), (1.001, ["wrong-node"])])
def test_the_scheduler_may_not_have_seen_a_node_relabelled_just_before(pause: float, causes: list[str]) -> None:
    j = Journal(about=("placed-as-assigned",))
    j.flavor("spot", instance="spot")
    node = j.node("node-1", instance="spot")
    a = admitted(j)
    node.relabel(instance="other")
    j.at(pause)
    a.pod("head", nodeSelector=SPOT)
    assert [f.cause for f in j.findings(until=5)] == causes


def test_s5_a_flavor_that_is_edited_after_the_job_was_unsuspended_is_fine(j: Journal) -> None:
    flavor = j.flavor("spot", instance="spot")
    a = admitted(j)
    j.at(5)
    flavor.edit(instance="other")
    j.at(10)
    a.pod("head", nodeSelector=SPOT)
    assert j.findings(until=15) == []
    a.pod("workers", nodeSelector={"instance": "other"})
    assert only(j.findings(until=15)).cause == "selector-differs"


@pytest.mark.parametrize(("pause", "causes"), [(1.0, []), (1.001, ["selector-differs"])])
def test_kueue_may_not_have_seen_a_flavor_edited_just_before_it_unsuspends(pause: float, causes: list[str]) -> None:
    j = Journal(about=("placed-as-assigned",))
    flavor = j.at(0).flavor("spot", instance="old")
    flavor.edit(instance="spot")
    a = j.at(pause).job("a", j.queue(flavors={"spot": {"cpu": 30}}))
    a.workload.admit(flavor="spot")
    a.suspend(False)
    a.pod("head", nodeSelector=SPOT)
    assert j.findings(until=15) == []
    a.pod("workers", nodeSelector={"instance": "old"})
    assert [f.cause for f in j.findings(until=15)] == causes


def test_a_flavor_that_asks_nothing_and_one_that_nobody_saw_are_fine(j: Journal) -> None:
    j.flavor("a")
    admitted(j, "a").pod("head")
    b = j.job("b", j.queue("cq-b"))
    b.workload.admit(flavor="b")
    b.suspend(False)
    b.pod("head")
    assert j.findings(until=5) == []


def test_clean_up_pods_elastic_jobs_and_jobs_that_kueue_skips_are_not_judged(j: Journal) -> None:
    j.flavor("spot", instance="spot")
    a = admitted(j)
    a.pod("head", labels={"ray.io/node-type": "redis-cleanup", "kueue.x-k8s.io/podset": "head"})
    for name, settings in (
        ("b", {"annotations": {"kueue.x-k8s.io/elastic-job": "true"}}),
        ("c", {"managedBy": "kueue.x-k8s.io/multikueue"}),
    ):
        b = j.job(name, a.queue, **settings)
        b.workload.admit(flavor="spot")
        b.suspend(False)
        b.pod("head")
    assert j.findings(until=5) == []


def test_pods_and_jobs_that_were_there_before_the_journal_are_not_judged_by_what_was_edited_since() -> None:
    j = Journal(about=("placed-as-assigned",))
    flavor = j.flavor("spot", instance="spot")
    a = admitted(j)
    a.pod("head")
    j.records = [dataclasses.replace(e, type="ADDED", listed=True) for e in j.records if isinstance(e, Event)]
    assert j.findings(until=5) == []
    flavor.edit(instance="other")
    j.at(5)
    a.pod("workers", nodeSelector=SPOT)
    assert j.findings(until=10) == []


def test_forgetting_a_scope_leaves_nothing() -> None:
    j = Journal(about=("placed-as-assigned",))
    flavor = j.flavor("spot", instance="spot")
    node = j.node("node-1", instance="spot")
    a = admitted(j)
    head, worker = a.pod("head"), a.pod("workers", nodeSelector=SPOT)
    ledger = j.ledger(until=5)
    assert [f.rule for f in ledger.findings(SCOPE) if f.rule in j.about] == ["placed-as-assigned"]
    ledger.forget(SCOPE)
    (rule,) = [r for r in ledger._rules if isinstance(r, PlacedAsAssigned)]
    assert (rule._found, rule._misplaced, rule._places, rule._in_force, rule._flavors) == ([], {}, {}, {}, {})
    before = len(j.records)
    for one in (head, worker, flavor, node):
        one.gone()
    for record in j.records[before:]:
        ledger.add(record)
    ledger.fold(Barrier(j.rev, EPOCH + 6 * 10**9))
    assert rule._nodes == {}
