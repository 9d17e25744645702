from __future__ import annotations

import pytest

from raykueue.audit.books.changes import ObjectChange
from raykueue.audit.replay import steps
from raykueue.audit.telling import short_name, what_changed
from raykueue.model.events import Header
from tests.audit.journals import EPOCH, PAIR, Job, Journal


@pytest.fixture
def j() -> Journal:
    return Journal()


def job(j: Journal) -> Job:
    return j.job("a", j.queue(cpu=3))


def told(j: Journal, kind: str) -> list[str]:
    """What is said of each write of a kind, in order; the first one is its creation."""
    changes = [change for step in steps([Header(EPOCH, pair=PAIR), *j.records]) for change in step.changes]
    return [what_changed(c) for c in changes if isinstance(c, ObjectChange) and c.ref.kind == kind]


def test_a_workloads_conditions_activity_and_end(j: Journal) -> None:
    w = job(j).workload
    w.write()
    w.reserve()
    w.admit()
    w.evict()
    w.release()
    w.off()
    w.finish()
    w.gone()
    assert told(j, "Workload") == [
        "created",
        "QuotaReserved (Test)",
        "Admitted (Test)",
        "Evicted (Preempted)",
        "QuotaReserved False (Test), Admitted False (Test)",
        "deactivated",
        "Finished (Succeeded)",
        "deleted",
    ]


def test_a_charge_that_is_scaled_down(j: Journal) -> None:
    w = j.job("a", j.queue(cpu=9), counts={"workers": 3}).workload
    w.admit()
    w.scale("workers", 1)
    w.write()
    assert told(j, "Workload")[1:] == ["charge changed", ""]


def test_a_pods_life(j: Journal) -> None:
    a = job(j)
    pod = a.pod("head", gated=True)
    pod.ungate()
    pod.body["spec"]["nodeName"] = "node-7"
    pod.resize(2)
    pod.terminate()
    pod.end("Failed")
    pod.gone()
    assert told(j, "Pod") == [
        "created, gated",
        "gates removed, Running",
        "on node-7, resized",
        "deletion asked for",
        "Failed",
        "deleted",
    ]


def test_a_rayjobs_states(j: Journal) -> None:
    a = job(j)
    a.suspend(False)
    a.state("Running", "RUNNING")
    a.body["status"]["message"] = "nothing that anybody would call a state"
    a.state("Running", "RUNNING")
    a.terminate()
    assert told(j, "RayJob") == [
        "created, suspend true",
        "suspend false",
        "Running, jobStatus RUNNING",
        "",
        "deletion asked for",
    ]


def test_a_cluster_queues_books_and_quota(j: Journal) -> None:
    q = j.queue(cpu=3)
    q.books(0, 0)
    q.books(2.5, 1)
    q.edit(default={"cpu": 1}, spot={"cpu": 4})
    q.body["spec"]["cohortName"] = "team"
    j.emit("ClusterQueue", q.body)
    assert told(j, "ClusterQueue") == [
        "created",
        "",
        "CPU usage 0 → 2.5, CPU reservation 0 → 1",
        "CPU quota 3 → 1, CPU quota 0 → 4",
        "cohort (none) → team",
    ]


def test_a_cohort_whose_quota_changes(j: Journal) -> None:
    cohort = j.cohort("team")
    j.emit("Cohort", cohort.body)
    cohort.body["spec"]["parentName"] = "all"
    j.emit("Cohort", cohort.body)
    assert told(j, "Cohort") == ["created", "", "spec changed"]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("head", "head"),
        ("twenty-four-characters-x", "twenty-four-characters-x"),
        ("dev-pytorch-text-classifier-8tjpw-m8nzn-head-l6wcl", "…m8nzn-head-l6wcl"),
        ("a" * 40, f"…{'a' * 18}"),
        (f"{'a' * 40}-", f"…{'a' * 17}-"),
    ],
)
def test_a_long_name_is_told_by_its_end(name: str, short: str) -> None:
    assert short_name(name) == short
