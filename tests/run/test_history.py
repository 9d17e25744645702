from __future__ import annotations

from raykueue.run.states import (
    Admitted,
    Complete,
    Evicted,
    Failed,
    Finished,
    Gone,
    Pending,
    QuotaReserved,
    Requeued,
    Running,
    State,
    Suspended,
)
from tests.run.feeds import FakeFeed, admission, preempted, uid


def moments(feed: FakeFeed, state: State) -> list[int]:
    return [begun.moment.rev for begun in feed.history_of().begun() if state.matches(begun.state)]


def test_the_story_of_a_preempted_job_begins_with_its_admission() -> None:
    assert preempted().history_of().story() == [Admitted, Running, Evicted("Preempted"), Suspended, Requeued]


def test_a_second_admission_is_a_chapter_of_its_own() -> None:
    feed = preempted()
    feed.workload(QuotaReserved="True", Admitted="True", Evicted="False", Requeued="False", admission=admission())
    feed.job("Running", "RUNNING")
    feed.job("Complete", "SUCCEEDED")
    feed.delete("RayJob", "job")
    assert feed.history_of().story()[5:] == [Admitted, Running, Complete, Gone]


def test_being_created_suspended_is_no_chapter_even_if_it_is_told_late() -> None:
    feed = FakeFeed()
    feed.write("RayJob", "job")
    feed.workload(QuotaReserved="True", Admitted="True", admission=admission())
    feed.job("Suspended")
    feed.job("Running", "RUNNING")
    assert feed.history_of().story() == [Admitted, Running]


def test_a_job_that_was_never_admitted_has_no_story() -> None:
    feed = FakeFeed()
    feed.job("Suspended")
    feed.workload(QuotaReserved="False Pending")
    assert feed.history_of().story() == []


def test_a_state_begins_once_however_often_it_is_written_again() -> None:
    feed = FakeFeed()
    first = feed.workload(QuotaReserved="True", admission=admission())
    feed.workload(QuotaReserved="True", Admitted="True", admission=admission())
    feed.workload(QuotaReserved="False")
    again = feed.workload(QuotaReserved="True", admission=admission())
    assert moments(feed, QuotaReserved) == [first, again]


def test_states_are_in_the_order_of_revisions_whatever_arrived_first() -> None:
    feed = FakeFeed()
    admitted = feed.workload(QuotaReserved="True", Admitted="True", admission=admission())
    feed.write("RayJob", "job", late_ms=50, status={"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"})
    feed.workload(QuotaReserved="True", Admitted="True", Evicted="True Preempted", admission=admission())
    begun = [one for one in feed.history_of().begun() if one.state.told]
    assert [one.state for one in begun] == [Admitted, Running, Evicted("Preempted")]
    assert begun[0].moment.rev == admitted
    # What was written later had arrived: so it was written before that, however late it came.
    assert begun[1].moment.t == 3_000_000
    assert begun[2].moment - begun[0].moment == 2.0


def test_another_job_and_its_workload_are_none_of_its() -> None:
    feed = preempted()
    before = feed.history_of().begun()
    feed.workload("RayJob other", "other", QuotaReserved="True", Admitted="True", admission=admission())
    feed.job("Failed", "FAILED", name="other")
    assert feed.history_of().begun() == before
    assert not feed.history_of().is_in(Admitted)
    assert feed.history_of("other").is_in(Failed)


def test_it_is_in_a_state_by_its_newest_workload_that_stays() -> None:
    feed = FakeFeed()
    feed.workload(name="old", QuotaReserved="True", Admitted="True", admission=admission())
    feed.workload(name="new", QuotaReserved="False Pending")
    feed.write("Workload", "old", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert feed.history_of().is_in(Pending)
    assert not feed.history_of().is_in(Admitted)
    feed.write("Workload", "new", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert feed.history_of().workload() is None


def test_it_is_in_an_eviction_only_for_the_reason_that_is_asked_for() -> None:
    history = preempted().history_of()
    assert history.is_in(Evicted)
    assert history.is_in(Evicted("Preempted"))
    assert not history.is_in(Evicted("Deactivated"))


def test_a_workload_that_kueue_counts_as_pending_is_pending_without_a_word() -> None:
    feed = FakeFeed()
    for number in (1, 2):
        feed.write("Workload", f"w{number}", f"RayJob job{number}", spec={"queueName": "local"})
    history = feed.history_of("job1")
    assert not history.is_in(Pending)
    feed.write("LocalQueue", "local", status={"pendingWorkloads": 1})
    assert not history.is_in(Pending)
    feed.write("LocalQueue", "local", status={"pendingWorkloads": 2})
    assert history.is_in(Pending)


def test_a_job_that_was_never_seen_is_in_no_state_and_not_gone() -> None:
    history = FakeFeed().history_of()
    assert history.rayjob() is None
    assert not history.is_in(Gone)
    assert not history.is_in(Suspended)


def test_hopeless_names_the_state_that_excludes_the_wanted_one() -> None:
    feed = FakeFeed()
    feed.job("Running", "RUNNING")
    assert feed.history_of().hopeless(Complete) is None
    feed.job("Failed", "FAILED")
    assert feed.history_of().hopeless(Complete) == Failed
    assert feed.history_of().hopeless(Failed) is None
    feed.workload(Finished="True")
    assert feed.history_of().hopeless(Admitted) == Finished
    feed.delete("RayJob", "job")
    assert feed.history_of().hopeless(Failed) == Gone


def test_pods_belong_to_it_by_their_controllers() -> None:
    feed = FakeFeed()
    feed.write("RayCluster", "cluster", "RayJob job")
    feed.write("Job", "submitter", "RayJob job")
    feed.write("Pod", "head", "RayCluster cluster")
    feed.write("Pod", "submit", "Job submitter")
    feed.write("Pod", "foreign", "RayCluster other")
    feed.write("Pod", "nobodys")
    assert [pod["metadata"]["name"] for pod in feed.history_of().pods()] == ["head", "submit"]
    feed.delete("RayCluster", "cluster")
    feed.delete("Pod", "submit")
    assert [pod["metadata"]["name"] for pod in feed.history_of().pods()] == ["head"]


def test_descendants_are_found_through_owners_that_are_gone() -> None:
    feed = FakeFeed()
    feed.write("RayJob", "job")
    feed.workload()
    feed.write("RayCluster", "cluster", "RayJob job")
    feed.write("Job", "cleanup", "RayCluster cluster")
    feed.write("Service", "head-svc", "RayCluster cluster")
    feed.write("ServiceAccount", "autoscaler", "RayCluster cluster")
    feed.write("RoleBinding", "autoscaler", "RayCluster cluster")
    feed.write("Pod", "cleaner", "Job cleanup")
    feed.write("Pod", "foreign", "RayCluster other")
    for kind, name in (("RayJob", "job"), ("RayCluster", "cluster"), ("Job", "cleanup"), ("Workload", "workload")):
        feed.delete(kind, name)
    found = [(kind, one["metadata"]["name"]) for kind, one in feed.history_of().descendants()]
    assert sorted(found) == [
        ("Pod", "cleaner"),
        ("RoleBinding", "autoscaler"),
        ("Service", "head-svc"),
        ("ServiceAccount", "autoscaler"),
    ]


def test_an_owner_that_is_no_controller_makes_a_descendant_too() -> None:
    feed = FakeFeed()
    feed.write("Service", "svc", metadata={"ownerReferences": [{"uid": uid("RayJob", "job")}]})
    assert [kind for kind, _ in feed.history_of().descendants()] == ["Service"]


def test_what_a_kubelet_said_of_containers_is_known_though_they_are_gone() -> None:
    feed = FakeFeed()
    feed.write("RayCluster", "cluster", "RayJob job")
    waits = {"name": "ray-head", "state": {"waiting": {"reason": "ErrImagePull"}}}
    killed = {"name": "ray-head", "state": {"running": {}}, "lastState": {"terminated": {"reason": "OOMKilled"}}}
    init = {"name": "wait", "state": {"terminated": {"reason": "Completed"}}}
    feed.write("Pod", "head", "RayCluster cluster", status={"containerStatuses": [waits]})
    feed.write("Pod", "head", what="MODIFIED", status={"containerStatuses": [killed], "initContainerStatuses": [init]})
    feed.write(
        "Pod", "foreign", "RayCluster other", status={"containerStatuses": [{"state": {"waiting": {"reason": "X"}}}]}
    )
    feed.delete("Pod", "head")
    assert feed.history_of().reasons() == {"ErrImagePull", "OOMKilled", "Completed"}
