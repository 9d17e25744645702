from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from raykueue.errors import ClusterError, ProductDefect, RecorderError, UsageError
from raykueue.kube.client import ApiError
from raykueue.ray.control import RayControl, SimulatedRay
from raykueue.ray.manifests import Prepared, Replaced
from raykueue.run import trial as trial_module
from raykueue.run.job import Job
from raykueue.run.naming import PRIORITY_LABEL, SCOPE_LABEL
from raykueue.run.refusals import Refused
from raykueue.run.session import Lease, Session
from raykueue.run.timeouts import Timeouts
from raykueue.run.trial import Trial
from tests.run.feeds import FakeFeed, conditions

RAYJOB: dict[str, Any] = {
    "apiVersion": "ray.io/v1",
    "kind": "RayJob",
    "metadata": {"name": "mine"},
    "spec": {
        "rayClusterSpec": {
            "headGroupSpec": {"template": {"spec": {}}},
            "workerGroupSpecs": [{"template": {"spec": {"terminationGracePeriodSeconds": 60}}}],
        },
    },
}


class FakeCluster:
    """An API server whose objects arrive in one feed, and a recorder."""

    def __init__(self) -> None:
        self.feed = FakeFeed()
        self.created: list[str] = []
        self.bodies: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.refuses: set[str] = set()
        self.answers: ApiError | None = None
        self.on_delete: Callable[[str], None] = lambda _: None
        self.on_barrier: Callable[[], object] = lambda: None
        self.answer = SimpleNamespace(problems=(), obligations=(), findings=(), circumstances={}, handovers=())

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if body["kind"] == "RayJob" and self.answers is not None:
            raise self.answers
        metadata = body["metadata"]
        name = metadata.get("name") or f"{metadata['generateName']}abcde"
        url = f"{path}/{name}"
        self.created.append(url)
        self.bodies[url] = body
        if body["kind"] == "ClusterQueue":
            self.feed.write("ClusterQueue", name, status={"conditions": conditions(Active="True Ready")})
        uid = f"uid of {body['kind']} {name}"
        return {**body, "metadata": {**metadata, "name": name, "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}}

    def delete(self, path: str) -> None:
        self.calls.append(f"delete {path}")
        if path in self.refuses:
            raise ClusterError(f"no answer for {path}")
        self.on_delete(path)

    def open(self, scope: Any) -> FakeFeed:
        self.calls.append(f"open {scope.name}")
        self.feed.scope = scope
        return self.feed

    def close(self, scope: str) -> None:
        self.calls.append(f"close {scope}")

    def barrier(self) -> None:
        self.on_barrier()

    def judge(self, _scope: str, _seconds: float) -> Any:
        return self.answer

    def slice(self, _scope: str, path: Path) -> None:
        path.write_text("journal")


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def trial(cluster: FakeCluster) -> Trial:
    session = SimpleNamespace(
        api=cluster,
        recording=cluster,
        ray=SimulatedRay(Path("nobody-listens")),
        tier="control-plane",
        pair={"kubernetes": "1.34.4", "kueue": "0.19.2", "kuberay": "1.6.2"},
    )
    timeouts = Timeouts(state=10.0, end=0.01)
    return Trial(cast("Session", session), cast("Lease", None), "test", timeouts)


def test_everything_of_a_manifest_is_made_under_the_scopes_names_after_the_scope_is_open(
    trial: Trial, cluster: FakeCluster
) -> None:
    before = trial.opened
    queue = trial.queue("queue.yaml")
    scope = trial.names.scope
    assert (before, trial.opened) == (False, True)
    assert cluster.created[0] == f"/api/v1/namespaces/raykueue-{scope}"
    assert cluster.bodies[cluster.created[0]]["metadata"]["labels"] == {SCOPE_LABEL: scope}
    assert (queue.name, queue.local, queue.namespace) == (f"cluster-queue-{scope}", "user-queue", f"raykueue-{scope}")
    assert cluster.feed.scope.cluster_queues == (f"cluster-queue-{scope}",)
    assert cluster.feed.scope.flavors == (f"default-flavor-{scope}",)
    assert set(cluster.feed.scope.priority_classes) == {f"prod-priority-{scope}", f"dev-priority-{scope}"}


def test_queues_are_made_once(trial: Trial) -> None:
    trial.queue("queue.yaml")
    with pytest.raises(UsageError, match="a test makes its queues once, from one manifest"):
        trial.queue("queue.yaml")


def test_a_manifest_without_a_local_queue_is_refused_before_anything_is_made(
    trial: Trial, cluster: FakeCluster
) -> None:
    with pytest.raises(UsageError, match=r"manifest rayjob.yaml has no LocalQueue"):
        trial.queue("rayjob.yaml")
    assert cluster.created == []
    assert not trial.opened


def test_without_a_queue_nothing_can_be_submitted(trial: Trial, cluster: FakeCluster) -> None:
    with pytest.raises(UsageError, match="ask for the `queue` fixture"):
        trial.submit("rayjob.yaml")
    assert cluster.created == []


def test_a_job_is_created_in_the_scopes_namespace_as_its_manifest_says(trial: Trial, cluster: FakeCluster) -> None:
    trial.queue("queue.yaml")
    job = trial.submit("rayjob.yaml")
    url = cluster.created[-1]
    assert url == f"/apis/ray.io/v1/namespaces/{trial.names.namespace}/rayjobs/job-abcde"
    assert (job.name, job.namespace, trial.jobs) == ("job-abcde", trial.names.namespace, [job])


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [
        (403, 'admission webhook "vrayjob.kb.io" denied the request: no', Refused),
        (403, 'rayjobs.ray.io is forbidden: User "nobody" cannot create resource', ApiError),
        (422, "invalid", Refused),
        (500, "failed calling webhook", ApiError),
    ],
)
def test_a_refusal_of_a_job_is_the_products_and_any_other_answer_is_not(
    trial: Trial, cluster: FakeCluster, code: int, message: str, error: type[Exception]
) -> None:
    trial.queue("queue.yaml")
    cluster.answers = ApiError("POST", "/path", code, {"message": message})
    with pytest.raises(error, match=message):
        trial.submit("rayjob.yaml")
    assert trial.jobs == []


def test_options_of_a_job_change_what_is_created_and_never_the_callers_manifest(
    trial: Trial, cluster: FakeCluster
) -> None:
    trial.queue("queue.yaml")
    kept = copy.deepcopy(RAYJOB)
    trial.submit(RAYJOB, name="low", priority="dev-priority", stops_after=5)
    assert kept == RAYJOB
    body = cluster.bodies[cluster.created[-1]]
    assert (body["metadata"].get("name"), body["metadata"]["generateName"]) == (None, "low-")
    assert body["metadata"]["labels"][PRIORITY_LABEL] == f"dev-priority-{trial.names.scope}"
    groups = body["spec"]["rayClusterSpec"]
    for group in (groups["headGroupSpec"], *groups["workerGroupSpecs"]):
        assert list(group["template"]["metadata"]["annotations"].values()) == ["5s"]
    trial.submit(RAYJOB)
    assert PRIORITY_LABEL not in cluster.bodies[cluster.created[-1]]["metadata"]["labels"]


def test_what_real_ray_needs_is_replaced_after_all_else_and_told_once(trial: Trial, cluster: FakeCluster) -> None:
    told = Replaced("spec.entrypoint", "python train.py", "wait")
    seen: list[str] = []

    def prepared(rayjob: dict[str, Any]) -> Prepared:
        seen.append(rayjob["metadata"]["namespace"])
        return Prepared({**rayjob, "spec": {**rayjob["spec"], "entrypoint": "wait"}}, (told,))

    trial.session.ray = cast("RayControl", SimpleNamespace(prepared=prepared))
    trial.queue("queue.yaml")
    for _ in range(2):
        trial.submit(RAYJOB)
        assert cluster.bodies[cluster.created[-1]]["spec"]["entrypoint"] == "wait"
    assert seen == [trial.names.namespace] * 2
    assert trial.replaced == (told,)


def test_pods_can_not_take_longer_to_stop_than_their_grace(trial: Trial, cluster: FakeCluster) -> None:
    trial.queue("queue.yaml")
    before = list(cluster.created)
    with pytest.raises(UsageError, match="stops_after=31: its pods are killed after 30 s, their grace period"):
        trial.submit(RAYJOB, stops_after=31)
    assert cluster.created == before


@pytest.mark.parametrize(("workload", "seconds"), [(None, 0.62), (5, 0.62), (6, 1.62)])
def test_a_job_later_than_another_is_created_in_a_later_second_than_its_workload(
    trial: Trial, monkeypatch: pytest.MonkeyPatch, workload: int | None, seconds: float
) -> None:
    waits: list[float] = []
    event = SimpleNamespace(wait=waits.append)
    monkeypatch.setattr(trial_module, "threading", SimpleNamespace(Event=lambda: event))
    created = datetime(2026, 1, 1, 12, 0, 5, tzinfo=UTC)
    monkeypatch.setattr(trial_module, "time", SimpleNamespace(time=lambda: created.timestamp() + 0.4))

    def made(second: int | None) -> dict[str, Any] | None:
        return None if second is None else {"metadata": {"creationTimestamp": f"2026-01-01T12:00:{second:02}Z"}}

    job = cast("Job", SimpleNamespace(manifest=made(5), history=SimpleNamespace(workload=lambda: made(workload))))
    trial.queue("queue.yaml")
    trial.submit(RAYJOB, later_than=job)
    assert waits == [pytest.approx(seconds)]


def test_ending_deletes_every_job_and_waits_until_nothing_is_left(trial: Trial, cluster: FakeCluster) -> None:
    trial.queue("queue.yaml")
    jobs = [trial.submit(RAYJOB, name=name) for name in ("a", "b")]
    for job in jobs:
        cluster.feed.write("RayJob", job.name)
    cluster.on_delete = lambda path: (cluster.feed.delete("RayJob", path.rsplit("/", 1)[1]), None)[1]
    trial.end_jobs()
    assert [call.rsplit("/", 1)[1] for call in cluster.calls if call.startswith("delete")] == ["b-abcde", "a-abcde"]


def test_everything_that_stays_is_told_of_every_job(trial: Trial, cluster: FakeCluster) -> None:
    trial.queue("queue.yaml")
    for name in ("a", "b"):
        cluster.feed.write("RayJob", trial.submit(RAYJOB, name=name).name)
    with pytest.raises(ProductDefect, match=r"still there: RayJob a-abcde\n.*still there: RayJob b-abcde"):
        trial.end_jobs()


def test_a_job_that_submit_does_not_know_is_deleted_and_refused(trial: Trial, cluster: FakeCluster) -> None:
    trial.queue("queue.yaml")
    cluster.on_barrier = lambda: cluster.feed.write("RayJob", "stray")  # it arrives no earlier
    with pytest.raises(UsageError, match="the test left RayJob stray behind"):
        trial.end_jobs()
    assert cluster.calls[-1] == f"delete /apis/ray.io/v1/namespaces/{trial.names.namespace}/rayjobs/stray"


def test_a_hole_in_the_record_is_no_judgement(trial: Trial, cluster: FakeCluster) -> None:
    cluster.answer.problems = ("gap of Pod",)
    with pytest.raises(RecorderError, match="gap of Pod"):
        trial.judge()


def test_what_is_still_waited_for_at_the_deadline_is_told(trial: Trial, cluster: FakeCluster) -> None:
    cluster.answer.obligations = (SimpleNamespace(rule="books-match", text="queue is unquiet"),)
    with pytest.raises(RecorderError, match="still waiting: books-match: queue is unquiet"):
        trial.judge()


def test_a_journal_is_saved_into_a_folder_that_may_not_be_there_yet(trial: Trial, tmp_path: Path) -> None:
    trial.save_journal(tmp_path / "journals" / "a.jsonl.gz")
    assert (tmp_path / "journals" / "a.jsonl.gz").read_text() == "journal"


def test_closing_removes_everything_newest_first_and_closes_the_scope_last(trial: Trial, cluster: FakeCluster) -> None:
    trial.queue("queue.yaml")
    made = list(cluster.created)
    trial.close()
    assert cluster.calls[1:] == [*(f"delete {path}" for path in reversed(made)), f"close {trial.names.scope}"]
    assert not trial.opened
    trial.close()
    assert len(cluster.calls) == len(made) + 2


def test_what_can_not_be_removed_keeps_nothing_else_from_it(trial: Trial, cluster: FakeCluster) -> None:
    trial.queue("queue.yaml")
    cluster.refuses = {cluster.created[1], cluster.created[2]}
    with pytest.raises(ClusterError, match="no answer for"):
        trial.close()
    assert len(cluster.calls) == len(cluster.created) + 2
    assert cluster.calls[-1] == f"close {trial.names.scope}"
