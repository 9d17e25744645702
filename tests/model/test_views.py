from __future__ import annotations

from typing import Any

import pytest

from raykueue.model import queues, views, workloads


def workload(**changes: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "metadata": {
            "name": "rayjob-a-1",
            "namespace": "ns",
            "uid": "w",
            "ownerReferences": [
                {"kind": "Other", "name": "o", "uid": "x"},
                {"kind": "RayJob", "name": "a", "uid": "j", "controller": True},
            ],
        },
        "spec": {"podSets": [{"name": "head", "count": 1}, {"name": "workers", "count": 3}]},
        "status": {
            "admission": {
                "clusterQueue": "cq",
                "podSetAssignments": [
                    {"name": "head", "count": 1, "flavors": {"cpu": "spot"}, "resourceUsage": {"cpu": "1"}},
                    {
                        "name": "workers",
                        "count": 3,
                        "flavors": {"cpu": "spot", "memory": "spot"},
                        "resourceUsage": {"cpu": "1500m", "memory": "10", "nvidia.com/gpu": "1"},
                    },
                ],
            },
            "conditions": [{"type": "QuotaReserved", "status": "True"}, {"type": "Admitted", "status": "True"}],
        },
    }
    for path, value in changes.items():
        body["status" if path in {"conditions", "admission", "reclaimablePods"} else "spec"][path] = value
    return body


RESERVED = {"type": "QuotaReserved", "status": "True"}


@pytest.mark.parametrize(
    ("changes", "holding"),
    [
        ({}, True),
        ({"conditions": [RESERVED]}, True),
        ({"conditions": [RESERVED, {"type": "Evicted", "status": "True"}]}, True),
        ({"conditions": [RESERVED, {"type": "Finished", "status": "True"}]}, False),
        ({"conditions": [RESERVED, {"type": "Finished", "status": "False"}]}, True),
        ({"conditions": [{"type": "QuotaReserved", "status": "False"}]}, False),
        ({"conditions": []}, False),
        ({"admission": None}, False),
        ({"active": False}, False),
        ({"active": True}, True),
    ],
)
def test_a_workload_holds_quota_while_reserved_unfinished_and_active(changes: dict[str, Any], holding: bool) -> None:
    assert workloads.holds(workload(**changes)) is holding


def test_a_workload_that_is_being_deleted_still_holds() -> None:
    body = workload()
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert workloads.holds(body)
    assert views.deleting(body)


def test_a_charge_is_the_total_of_its_pod_sets_by_flavor_and_what_has_no_flavor_is_left_out() -> None:
    charge = workloads.charge(workload())
    assert charge.cluster_queue == "cq"
    assert charge.admitted
    assert charge.totals == {("spot", "cpu"): 2500, ("spot", "memory"): 10}
    assert charge.pod_sets["workers"].per_pod == {"cpu": 500, "memory": 3}


def test_fewer_pods_left_than_assigned_scale_the_charge_by_integer_division() -> None:
    charge = workloads.charge(workload(reclaimablePods=[{"name": "workers", "count": 1}]))
    assert charge.pod_sets["workers"].left == 2
    assert charge.pod_sets["workers"].amounts == {"cpu": 1000, "memory": 6}
    down = workloads.charge(workload(podSets=[{"name": "head", "count": 1}, {"name": "workers", "count": 1}]))
    assert down.totals == {("spot", "cpu"): 1500, ("spot", "memory"): 3}


def test_more_pods_wanted_than_assigned_leave_the_charge_alone() -> None:
    up = workloads.charge(workload(podSets=[{"name": "head", "count": 1}, {"name": "workers", "count": 9}]))
    assert up.totals == workloads.charge(workload()).totals


def test_a_missing_count_is_that_of_the_spec() -> None:
    body = workload()
    del body["status"]["admission"]["podSetAssignments"][1]["count"]
    assert workloads.charge(body).pod_sets["workers"].count == 3


def test_the_job_of_a_workload_is_its_controller_else_its_label() -> None:
    body = workload()
    assert workloads.job_uid(body) == "j"
    del body["metadata"]["ownerReferences"]
    body["metadata"]["labels"] = {views.JOB_UID: "k"}
    assert workloads.job_uid(body) == "k"


def test_a_slice_names_the_one_it_replaces_with_or_without_namespace() -> None:
    body = workload()
    assert workloads.replaces(body) == ""
    for value in ("ns/old", "old"):
        body["metadata"]["annotations"] = {views.REPLACES: value}
        assert workloads.replaces(body) == "old"


def test_a_template_names_all_its_containers() -> None:
    template = {"spec": {"containers": [{"name": "ray"}], "initContainers": [{"name": "init"}]}}
    body = workload(podSets=[{"name": "head", "count": 1, "template": template}])
    assert workloads.template_containers(body, "head") == {"ray", "init"}
    assert workloads.template_containers(body, "none") == frozenset()


GROUPS = [
    {
        "coveredResources": ["cpu", "memory"],
        "flavors": [
            {
                "name": "spot",
                "resources": [
                    {"name": "cpu", "nominalQuota": "3", "borrowingLimit": "500m", "lendingLimit": 1},
                    {"name": "memory", "nominalQuota": "1Gi"},
                ],
            }
        ],
    }
]


@pytest.mark.parametrize(
    ("field", "parent"), [("cohort", "co"), ("cohortName", "co"), ("parent", "co"), ("parentName", "co"), ("no", "")]
)
def test_quota_and_parent_are_read_from_every_api_version(field: str, parent: str) -> None:
    spec = queues.quota_spec({"metadata": {}, "spec": {field: "co", "resourceGroups": GROUPS}})
    assert spec.parent == parent
    assert spec.quotas == {
        ("spot", "cpu"): queues.Quota(3000, 500, 1000),
        ("spot", "memory"): queues.Quota(1 << 30),
    }
    assert spec.covered == {"cpu", "memory"}
    assert spec.groups == ((frozenset({"cpu", "memory"}), ("spot",)),)


def test_a_status_lists_what_is_booked_zeros_included() -> None:
    flavors = [{"name": "spot", "resources": [{"name": "cpu", "total": "4", "borrowed": "1"}, {"name": "memory"}]}]
    body = {"metadata": {}, "status": {"flavorsReservation": flavors, "reservingWorkloads": 1, "admittedWorkloads": 0}}
    seen = queues.booked(body)
    assert seen.reservation == {("spot", "cpu"): queues.Entry(4000, 1000), ("spot", "memory"): queues.Entry(0, 0)}
    assert seen.usage == {}
    assert (seen.reserving, seen.admitted) == (1, 0)


def test_a_queue_without_status_says_nothing_rather_than_zero() -> None:
    assert queues.booked({"metadata": {}}) == queues.Booked({}, {}, None, None)
