from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from raykueue.errors import UsageError, WaitFailed
from raykueue.kube.client import Api, ApiError
from raykueue.kube.exec import Container, Ran
from raykueue.ray.control import RayControl
from raykueue.run.job import Job
from raykueue.run.states import Admitted, Complete, Evicted, Failed, Gone, Pending, Running
from raykueue.run.timeouts import Timeouts
from tests.run.feeds import NAMESPACE, FakeFeed, admission, preempted, uid


class Calls:
    """An API server and a Ray that note what they are asked."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **_options: self.made.append((name, *arguments))


class Refusing(Calls):
    """The same, but every change is answered with an error."""

    def __init__(self, error: ApiError) -> None:
        super().__init__()
        self._error = error

    def merge(self, *_: object) -> None:
        raise self._error


def job_in(feed: FakeFeed, calls: Calls | None = None, **seconds: float) -> Job:
    manifest = {"metadata": {"name": "job", "uid": uid("RayJob", "job")}}
    other = calls or Calls()
    timeouts = Timeouts(**({"state": 10.0, "end": 10.0} | seconds))
    return Job(feed.history_of(), cast("Api", other), cast("RayControl", other), manifest, timeouts)


class Later:
    """Does something in a thread of its own once the feed has a waiting thread; joined at the end of the block."""

    def __init__(self, feed: FakeFeed, *steps: Callable[[], object]) -> None:
        def run() -> None:
            while not feed._waits:
                assert time.monotonic() < deadline
            for step in steps:
                step()

        deadline = time.monotonic() + 10
        self._thread = threading.Thread(target=run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join(10)
        assert not self._thread.is_alive()


def test_a_wait_returns_with_the_event_and_not_a_moment_later() -> None:
    feed = FakeFeed()
    job = job_in(feed)
    feed.job("Initializing")
    # The state lasts for this one event only.
    with Later(feed, lambda: feed.job("Running", "RUNNING"), lambda: feed.job("Complete", "SUCCEEDED")):
        assert job.until(Running) is job


def test_a_state_that_is_there_already_is_not_waited_for() -> None:
    feed = preempted()
    assert job_in(feed, state=0.0).until(Evicted("Preempted"))


def test_a_wait_that_has_become_hopeless_fails_at_once_with_wanted_last_seen_and_why() -> None:
    feed = preempted()
    job = job_in(feed, state=600.0)
    feed.write("RayCluster", "cluster", "RayJob job")
    feed.write("Pod", "head", "RayCluster cluster", status={"phase": "Running"})
    failed = {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed", "message": "exit 1"}
    with Later(feed, lambda: feed.write("RayJob", "job", status=failed)), pytest.raises(WaitFailed) as caught:
        job.until(Complete)
    text = str(caught.value)
    assert "RayJob job: wanted Complete, it is Failed, after which that can't come (waited " in text
    assert '  RayJob:   jobDeploymentStatus "Failed", jobStatus "FAILED", reason "AppFailed", message "exit 1"' in text
    assert "  Workload: QuotaReserved=False (Pending), Admitted=False (Admitted), Evicted=True (Preempted)" in text
    assert "  pods:     head Running" in text
    assert "  story:    [Admitted, Running, Evicted('Preempted'), Suspended, Requeued, Failed]" in text
    assert "  pending because: QuotaReserved is False" in text


def test_a_wait_ends_at_its_deadline_with_the_same_words() -> None:
    feed = FakeFeed()
    feed.write("RayJob", "job")
    with pytest.raises(
        WaitFailed, match=r"wanted Admitted, not within 0.01 s(.|\n)*RayJob:   without a status yet"
    ) as caught:
        job_in(feed).until(Admitted, within=0.01)
    assert "Workload: none" in str(caught.value)
    assert "pending because" not in str(caught.value)
    feed.delete("RayJob", "job")
    with pytest.raises(WaitFailed, match=r"it is Gone, after which that can't come(.|\n)*RayJob:   gone"):
        job_in(feed).until(Running, within=0.01)


def test_moments_are_compared_by_revision_and_subtracted_in_milliseconds() -> None:
    job = job_in(preempted())
    assert job.moment(Admitted) < job.moment(Running) < job.moment(Evicted("Preempted"))
    assert job.moment(Running) - job.moment(Admitted) == 3.0
    assert job.was(Evicted)
    assert not job.was(Evicted("Deactivated"))


def test_the_last_of_several_moments_is_the_moment() -> None:
    feed = preempted()
    again = feed.workload(QuotaReserved="True", Admitted="True", admission=admission())
    assert len(job_in(feed).moments(Admitted)) == 2
    assert job_in(feed).moment(Admitted).rev == again


def test_a_moment_that_never_came_is_told_with_the_story() -> None:
    with pytest.raises(WaitFailed, match=r"RayJob job never was Complete; its story: \[Admitted, Running,"):
        job_in(preempted()).moment(Complete)


def test_why_it_is_pending_is_in_kueues_own_words() -> None:
    feed = FakeFeed()
    assert job_in(feed).why_pending == ""
    feed.workload(QuotaReserved="False Pending")
    assert job_in(feed).why_pending == "QuotaReserved is False"
    assert job_in(feed).until(Pending)
    feed.workload(QuotaReserved="True", admission=admission())
    assert job_in(feed).why_pending == ""


def test_why_it_waits_is_waited_for() -> None:
    feed = FakeFeed()
    feed.workload()
    job = job_in(feed)
    with Later(feed, lambda: feed.workload(QuotaReserved="False Pending")):
        assert job.waits_because() == "QuotaReserved is False"
    with pytest.raises(WaitFailed, match="wanted Pending, not within 0 s, or not why"):
        job_in(FakeFeed()).waits_because(within=0)


@pytest.mark.parametrize(
    ("conditions", "is_in"),
    [
        ({"QuotaReserved": "True"}, "QuotaReserved"),
        ({"QuotaReserved": "False Pending", "Finished": "True"}, "Finished"),
    ],
)
def test_what_does_not_wait_any_more_is_not_waited_for(conditions: dict[str, str], is_in: str) -> None:
    feed = FakeFeed()
    feed.workload(**conditions, admission=admission())
    with pytest.raises(WaitFailed, match=f"wanted Pending, it is {is_in}"):
        job_in(feed).waits_because(within=60)


def test_a_job_leaves_its_queue_unless_what_it_asks_for_is_refused() -> None:
    calls = Calls()
    assert job_in(FakeFeed(), calls).leave_queue()
    assert [call[0] for call in calls.made] == ["merge"]

    def answering(code: int, message: str) -> Job:
        return job_in(FakeFeed(), Refusing(ApiError("PATCH", "/path", code, {"message": message})))

    assert not answering(403, 'admission webhook "vrayjob.kb.io" denied the request: no').leave_queue()
    with pytest.raises(ApiError, match="cannot patch"):
        answering(403, 'rayjobs.ray.io is forbidden: User "nobody" cannot patch').leave_queue()


def test_what_it_is_charged_is_known_while_it_holds_quota() -> None:
    feed = FakeFeed()
    assert job_in(feed).charged == {}
    feed.workload(QuotaReserved="True", admission=admission(cpu="2500m"))
    assert job_in(feed).charged == {"cpu": "2500m"}
    assert job_in(feed).pod_sets == {"head": {"cpu": "2500m"}}
    feed.workload(QuotaReserved="True", Finished="True", admission=admission())
    assert job_in(feed).charged == {}
    assert job_in(feed).pod_sets == {}


def test_pods_are_counted_by_podset_and_only_those_that_live() -> None:
    feed = FakeFeed()
    feed.write("RayCluster", "cluster", "RayJob job")
    feed.write("Job", "submitter", "RayJob job")
    head, worker = {"ray.io/node-type": "head"}, {"ray.io/node-type": "worker", "ray.io/group": "Workers"}
    for name, owner, phase, labels in (
        ("head", "RayCluster cluster", "Running", head),
        ("w1", "RayCluster cluster", "Running", worker),
        ("w2", "RayCluster cluster", "Pending", worker),
        ("w3", "RayCluster cluster", "Failed", worker),
        ("submit", "Job submitter", "Running", {}),
        ("named", "Job submitter", "Running", {"kueue.x-k8s.io/podset": "submitter"}),
    ):
        container = {"name": "c", "resources": {"requests": {"cpu": "500m"}}}
        about: dict[str, Any] = {
            "metadata": {"labels": labels},
            "spec": {"containers": [container]},
            "status": {"phase": phase},
        }
        feed.write("Pod", name, owner, **about)
    job = job_in(feed)
    assert job.pods == {"head": {"cpu": "500m"}, "workers": {"cpu": 1}, "submitter": {"cpu": 1}}
    assert job.running_pods == {"head": 1, "workers": 1, "submitter": 2}


def test_its_status_is_empty_before_anything_was_seen_and_unknown_once_it_is_gone() -> None:
    feed = FakeFeed()
    job = job_in(feed)
    assert (job.job_status, job.deployment_status) == ("", "")
    feed.job("Running", "RUNNING")
    assert (job.job_status, job.deployment_status) == ("RUNNING", "Running")
    feed.delete("RayJob", "job")
    with pytest.raises(UsageError, match="RayJob job is gone, and its status with it"):
        _ = job.job_status


def test_a_job_of_which_nothing_was_seen_yet_is_not_taken_for_gone() -> None:
    feed = FakeFeed()
    with pytest.raises(WaitFailed, match="still there: RayJob job"):
        job_in(feed, end=0.01).until_nothing_is_left()


def test_nothing_is_left_once_the_last_descendant_is_gone() -> None:
    feed = FakeFeed()
    feed.write("RayJob", "job")
    feed.write("RayCluster", "cluster", "RayJob job")
    feed.write("Pod", "head", "RayCluster cluster")
    feed.delete("RayJob", "job")
    feed.delete("RayCluster", "cluster")
    job = job_in(feed)
    assert job.left_behind() == ["Pod head"]
    with pytest.raises(
        WaitFailed, match=r"expected nothing to be left within 0.01 s of its deletion; still there: Pod head$"
    ):
        job.until_nothing_is_left(within=0.01)
    with Later(feed, lambda: feed.delete("Pod", "head")):
        assert job.until_nothing_is_left() is job


def test_what_is_done_to_it_is_asked_of_the_right_one() -> None:
    calls = Calls()
    job = job_in(FakeFeed(), calls)
    job.finish(3).stop().delete()
    assert calls.made == [
        ("finish", NAMESPACE, "job", 3),
        ("stop", NAMESPACE, "job"),
        ("delete", f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayjobs/job"),
    ]


def test_a_failed_job_that_was_wanted_to_fail_is_no_failure() -> None:
    feed = FakeFeed()
    feed.job("Failed", "FAILED")
    assert job_in(feed).until(Failed)
    feed.delete("RayJob", "job")
    assert job_in(feed).until(Gone)


def test_an_end_that_is_to_be_read_first_is_told_so_once_kuberay_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    feed, done = FakeFeed(), list[str]()
    feed.job("Running", "RUNNING")
    job = job_in(feed)

    def finish(*_: object, after_read: Callable[[], object] | None) -> None:
        assert after_read is not None
        after_read()
        done.append(job.job_status)

    monkeypatch.setattr(job._ray, "finish", finish)
    with Later(feed, lambda: feed.job("Running", "FAILED")):
        job.finish(1, after_read=True)
    assert done == ["FAILED"]


def test_an_end_that_is_never_read_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = FakeFeed()
    feed.job("Running", "RUNNING")
    job = job_in(feed, state=0.01)
    monkeypatch.setattr(job._ray, "finish", lambda *_, after_read: after_read())
    with pytest.raises(
        WaitFailed, match=r"wanted KubeRay to say within 0\.01 s that its Ray job is over; it .*RUNNING"
    ):
        job.finish(1, after_read=True)


HEAD: dict[str, Any] = {
    "metadata": {"labels": {"ray.io/node-type": "head"}},
    "spec": {"containers": [{"name": "ray-head"}, {"name": "ray-job-submitter"}]},
}


def with_head(feed: FakeFeed, reason: str = "") -> None:
    feed.write("RayCluster", "cluster", "RayJob job")
    states = [{"name": "ray-head", "state": {"waiting": {"reason": reason}}}] if reason else []
    feed.write("Pod", "head", "RayCluster cluster", status={"containerStatuses": states}, **HEAD)


def test_a_wait_for_what_a_kubelet_says_ends_with_the_event() -> None:
    feed = FakeFeed()
    with_head(feed)
    with Later(feed, lambda: with_head(feed, "ErrImagePull")):
        assert job_in(feed).until_said("ErrImagePull").history.reasons() == {"ErrImagePull"}


def test_a_wait_for_what_a_kubelet_never_says_tells_what_it_said() -> None:
    feed = FakeFeed()
    with_head(feed, "ErrImagePull")
    with pytest.raises(WaitFailed, match=r"wanted a container of it to be OOMKilled .* said of them: ErrImagePull"):
        job_in(feed, state=0.01).until_said("OOMKilled")


def test_a_wait_for_a_head_that_is_told_to_go_and_replaced_follows_its_pods() -> None:
    feed = FakeFeed()
    with_head(feed)
    job = job_in(feed)
    before = job.head
    going = {"metadata": {**HEAD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    with Later(feed, lambda: feed.write("Pod", "head", "RayCluster cluster", **{**HEAD, **going})):
        job.until_head_is_told_to_go()
    with pytest.raises(WaitFailed, match=r"wanted its head pod to be another that runs within 0\.01 s; it is"):
        job_in(feed, state=0.01).until_head_is_replaced(before)

    def another() -> None:
        feed.delete("Pod", "head")
        feed.write("Pod", "other", "RayCluster cluster", status={"phase": "Running"}, **HEAD)

    with Later(feed, another):
        job.until_head_is_replaced(before)


def test_a_command_runs_in_the_heads_first_container() -> None:
    feed, ran = FakeFeed(), list[Any]()
    with_head(feed)
    job = job_in(feed)

    def run(container: Container, command: Sequence[str], seconds: float = 0.0) -> Ran:
        ran.append((container, command))
        return Ran(1, "no cluster")

    job._run = run
    assert job.run_in_head("ray", "status") == Ran(1, "no cluster")
    assert ran == [(Container(NAMESPACE, "head", "ray-head"), ("ray", "status"))]


def test_no_command_runs_where_containers_are_simulated_or_there_is_no_head() -> None:
    feed = FakeFeed()
    job = job_in(feed)
    with pytest.raises(UsageError, match="its containers are simulated; mark the test with tier"):
        job.run_in_head("true")
    job._run = lambda *_: Ran(0, "")
    with pytest.raises(UsageError, match="has 0 head pods, expected one"):
        job.run_in_head("true")


@pytest.mark.parametrize(("word", "told"), [("RUNNING", "RUNNING"), (None, "")])
def test_the_state_of_the_ray_job_is_rays_own_word(
    word: str | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_in(FakeFeed())
    monkeypatch.setattr(job._ray, "state", lambda *_: {"status": word})
    assert job.ray_state == told


def test_a_clean_up_is_given_up_only_if_it_is_suspended() -> None:
    feed, calls = FakeFeed(), Calls()
    job = job_in(feed, calls)
    assert job.give_up_clean_up() is job
    feed.write("RayCluster", "cluster", "RayJob job", apiVersion="ray.io/v1")
    feed.write("Job", "clean", "RayCluster cluster", spec={"suspend": False})
    with pytest.raises(WaitFailed, match="to be gone, or to wait for a suspended clean-up"):
        job.give_up_clean_up()
    assert calls.made == []
    feed.write("Job", "clean", "RayCluster cluster", spec={"suspend": True})
    job.give_up_clean_up()
    path = f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayclusters/cluster"
    assert calls.made == [("merge", path, {"metadata": {"finalizers": None}})]
