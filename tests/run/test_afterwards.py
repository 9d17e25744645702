from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from raykueue.errors import WaitFailed
from raykueue.model.deletion.dimensions import Mode, Outcome
from raykueue.model.deletion.expected import Due, Expected, Part, Status
from raykueue.run.afterwards import Afterwards
from raykueue.run.job import Job
from raykueue.run.states import Complete, Suspended
from tests.run.feeds import FakeFeed
from tests.run.test_job import Calls, Later, job_in

WHOLE = frozenset({Part.RAYJOB, Part.CLUSTER})


def end_time(seconds_ago: float = 0.0) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds_ago))


def ends(feed: FakeFeed, deployment: str, job: str = "", reason: str = "", seconds_ago: float = 0.0) -> int:
    status = {"jobDeploymentStatus": deployment, "jobStatus": job, "reason": reason, "endTime": end_time(seconds_ago)}
    return feed.write("RayJob", "job", status=status)


def running(**seconds: float) -> tuple[FakeFeed, Calls, Job]:
    feed, calls = FakeFeed(), Calls()
    feed.job("Running", "RUNNING")
    feed.write("RayCluster", "cluster", "RayJob job")
    job = job_in(feed, calls, **seconds)
    job.manifest = {**job.manifest, "spec": {}}
    return feed, calls, job


@pytest.mark.parametrize(
    ("outcome", "told", "asked"),
    [
        (Outcome.SUCCEEDED, ("Complete", "SUCCEEDED"), ("finish", "ns", "job", 0)),
        (Outcome.FAILED, ("Failed", "FAILED"), ("finish", "ns", "job", 1)),
        (Outcome.STOPPED, ("Complete", "STOPPED"), ("stop", "ns", "job")),
    ],
)
def test_an_end_is_brought_about_and_waited_for(
    outcome: Outcome, told: tuple[str, str], asked: tuple[Any, ...]
) -> None:
    feed, calls, job = running()
    with Later(feed, lambda: ends(feed, *told)):
        after = job.end(outcome)
    assert calls.made == [asked]
    assert after.status == Status(*told)


def test_a_deadline_is_set_while_the_job_runs() -> None:
    feed, calls, job = running()
    with Later(feed, lambda: ends(feed, "Failed", "RUNNING", "DeadlineExceeded")):
        after = job.end(Outcome.DEADLINE_RUNNING)
    (asked,) = calls.made
    assert asked[0] == "merge"
    assert asked[2] == {"spec": {"activeDeadlineSeconds": 1}}
    assert after.status == Status("Failed", "RUNNING", "DeadlineExceeded")


def test_a_job_that_initializes_gets_its_deadline_once_its_pods_are_there() -> None:
    feed, calls, job = running()

    def pods() -> None:
        assert calls.made == []
        for kind in ("head", "worker"):
            feed.write("Pod", kind, "RayCluster cluster", metadata={"labels": {"ray.io/node-type": kind}})

    with Later(feed, pods, lambda: ends(feed, "Failed", "", "DeadlineExceeded")):
        after = job.end(Outcome.DEADLINE_INITIALIZING)
    (asked,) = calls.made
    assert asked[2] == {"spec": {"activeDeadlineSeconds": 1}}
    assert after.status == Status("Failed", "", "DeadlineExceeded")


def test_pods_that_do_not_come_fail_with_what_there_is() -> None:
    _, _, job = running(state=0.05)
    with pytest.raises(WaitFailed, match=r"wanted head and worker pods within 0\.05 s; there is .*RayCluster"):
        job.end(Outcome.DEADLINE_INITIALIZING)


def test_a_retry_is_failed_when_it_runs_again() -> None:
    feed, calls, job = running()

    def again() -> None:
        feed.job("Retrying")
        feed.job("Running", "RUNNING")

    with Later(feed, again, lambda: ends(feed, "Failed", "FAILED", "AppFailed")):
        after = job.end(Outcome.RETRIES_USED_UP)
    assert [asked[0] for asked in calls.made] == ["finish", "finish"]
    assert after.status.job == "FAILED"


def test_a_retry_that_does_not_come_fails() -> None:
    feed, _, job = running(state=0.05)
    with pytest.raises(WaitFailed, match="tried again and Running"):
        job.end(Outcome.RETRIES_USED_UP)
    ends(feed, "Failed", "FAILED")


def test_an_end_that_does_not_come_fails_with_what_the_job_is() -> None:
    _, _, job = running(state=0.05)
    with pytest.raises(WaitFailed, match=r'Complete or Failed \(success\) within 0\.05 s; it is .*"Running"'):
        job.end(Outcome.SUCCEEDED)


def test_a_job_that_becomes_invalid_instead_fails_at_once() -> None:
    feed, _, job = running()
    feed.job("ValidationFailed")
    with pytest.raises(WaitFailed, match="its spec is invalid now"):
        job.end(Outcome.SUCCEEDED)


def test_an_end_counts_even_if_the_rayjob_is_gone_before_we_look() -> None:
    feed, _, job = running()
    ends(feed, "Complete", "SUCCEEDED")
    feed.delete("RayJob", "job")
    assert job.end(Outcome.SUCCEEDED).status == Status("Complete", "SUCCEEDED")


def test_a_sidecar_fails_only_once_kuberay_has_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    feed, _, job = running()
    read: list[bool] = []
    job.manifest = {**job.manifest, "spec": {"submissionMode": Mode.SIDECAR.value}}

    def finish(*_: object, after_read: Callable[[], object] | None = None) -> None:
        read.append(after_read is not None)
        assert after_read is not None
        after_read()

    monkeypatch.setattr(job._ray, "finish", finish)
    with Later(feed, lambda: feed.job("Running", "FAILED"), lambda: ends(feed, "Failed", "FAILED", "AppFailed")):
        job.end(Outcome.FAILED)
    assert read == [True]


def ended(seconds_ago: float = 0.0) -> tuple[FakeFeed, Afterwards]:
    feed, _, job = running()
    ends(feed, "Complete", "SUCCEEDED", seconds_ago=seconds_ago)
    return feed, job.end(Outcome.SUCCEEDED)


def about(goes: dict[Part, Due] | None = None) -> Expected:
    return Expected("file@v1", parts=WHOLE, goes=goes or {})


def test_what_is_expected_to_go_is_waited_for() -> None:
    feed, after = ended()
    with Later(feed, lambda: feed.delete("RayCluster", "cluster")):
        assert after.left_behind(about({Part.CLUSTER: Due(0)})) == {Part.RAYJOB}


def test_what_should_have_gone_by_now_is_left() -> None:
    _, after = ended(seconds_ago=60)
    assert after.left_behind(about({Part.CLUSTER: Due(0)})) == WHOLE


def test_what_is_expected_to_stay_is_watched() -> None:
    feed, after = ended()
    with Later(feed, lambda: feed.delete("RayCluster", "cluster")):
        assert after.left_behind(about()) == {Part.RAYJOB}


def test_what_stayed_until_nobody_could_take_it_any_more_has_stayed() -> None:
    _, after = ended(seconds_ago=60)
    assert after.left_behind(about()) == WHOLE


def test_a_job_without_a_workload_is_suspended_by_its_own_field() -> None:
    _, calls, job = running()
    job.suspend()
    job.resume()
    assert [asked[2] for asked in calls.made] == [{"spec": {"suspend": True}}, {"spec": {"suspend": False}}]


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_queued_job_is_suspended_by_its_workload_in_the_version_it_was_read_in(version: str) -> None:
    feed, calls, job = running()
    conditions = [{"type": "QuotaReserved", "status": "True"}]
    status = {"conditions": conditions}
    feed.write("Workload", "workload", "RayJob job", apiVersion=f"kueue.x-k8s.io/{version}", status=status)
    job.suspend()
    job.resume()
    path = f"/apis/kueue.x-k8s.io/{version}/namespaces/ns/workloads/workload"
    assert [asked[1] for asked in calls.made] == [path, path]
    assert [asked[2] for asked in calls.made] == [{"spec": {"active": False}}, {"spec": {"active": True}}]
    assert not job.was(Suspended)
    assert not job.was(Complete)


def test_pods_are_placed_when_the_last_has_a_node() -> None:
    feed, _, job = running()
    feed.write("RayJob", "job", spec={"rayClusterSpec": {"workerGroupSpecs": [{"replicas": 1}]}})
    assert not job.finds_room(within=0)
    head: dict[str, Any] = {"metadata": {"labels": {"ray.io/node-type": "head"}}}
    worker: dict[str, Any] = {"metadata": {"labels": {"ray.io/node-type": "worker"}}}
    feed.write("Pod", "head", "RayCluster cluster", spec={"nodeName": "node"}, **head)
    assert not job.finds_room(within=0), "the worker is not there yet"
    feed.write("Pod", "head", spec={})
    feed.write("Pod", "worker", "RayCluster cluster", spec={}, **worker)
    feed.write("Pod", "head", spec={"nodeName": "node"})
    with pytest.raises(WaitFailed, match=r"wanted its head and workers to have nodes within 0 s; its pods: .*worker"):
        job.placed(within=0)
    last = feed.write("Pod", "worker", spec={"nodeName": "node"})
    feed.write("Pod", "head", spec={"nodeName": "node"}, status={"phase": "Running"})
    assert job.placed(within=0).rev == last
    assert job.finds_room(within=0)


def test_pods_that_are_made_after_the_end_are_named() -> None:
    feed, after = ended()
    with Later(feed, lambda: feed.write("Pod", "again", "RayCluster cluster", late_ms=60_000)):
        assert after.made(within=5) == ["again"]


def test_pods_that_were_there_before_the_end_are_not() -> None:
    feed, _, job = running()
    feed.write("Pod", "head", "RayCluster cluster")
    ends(feed, "Complete", "SUCCEEDED", seconds_ago=60)
    assert job.end(Outcome.SUCCEEDED).made(within=5) == []
