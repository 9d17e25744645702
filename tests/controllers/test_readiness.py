from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from raykueue.controllers import readiness
from raykueue.controllers.readiness import prove_controllers, prove_webhooks
from raykueue.errors import ClusterError
from raykueue.kube.client import Api, ApiError

JOBS = "/apis/ray.io/v1/namespaces/default/rayjobs"


class FakeApi:
    """Two controllers that do what a test says, each at the n-th look."""

    def __init__(self, *, kueue_at: int = 1, kuberay_at: int = 1, workloads: str = "v1beta2") -> None:
        self.looks = 0
        self.kueue_at, self.kuberay_at, self.served = kueue_at, kuberay_at, workloads
        self.stored: dict[str, dict[str, Any]] = {}
        self.answers: list[dict[str, Any] | ClusterError] = []
        self.dry_runs = 0
        self.failure: ClusterError | None = None

    def create(self, path: str, body: dict[str, Any], **query: str) -> dict[str, Any]:
        if query.get("dryRun") == "All":
            self.dry_runs += 1
            answer = self.answers.pop(0)
            if isinstance(answer, ClusterError):
                raise answer
            return answer
        body = {**body, "metadata": {**body["metadata"], "uid": "u"}}
        self.stored[f"{path}/{body['metadata']['name']}"] = body
        return body

    def get(self, path: str) -> dict[str, Any]:
        if self.failure is not None:
            raise self.failure
        if path.startswith(JOBS):
            self.looks += 1
            status = {"jobDeploymentStatus": "Suspended"} if self.looks >= self.kuberay_at else {}
            return {**self.stored[path], "status": status}
        if f"/{self.served}/" not in path:
            raise ApiError("GET", path, 404, {"reason": "NotFound"})
        other = {"metadata": {"ownerReferences": [{"uid": "somebody else's"}]}}
        mine = {"metadata": {"ownerReferences": [{"uid": "u"}]}}
        return {"items": [other, mine] if self.looks >= self.kueue_at else [other]}

    def delete(self, path: str) -> None:
        del self.stored[path]


def prove(check: Callable[[Api, Callable[[str], str]], None], fake: FakeApi) -> None:
    check(cast("Api", fake), lambda component: f"the log of {component}")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "POLL_SECONDS", 0.001)


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "WEBHOOK_SECONDS", 0.02)
    monkeypatch.setattr(readiness, "PROBE_SECONDS", 0.02)


def test_a_webhook_is_proven_once_a_queued_job_comes_back_suspended() -> None:
    fake = FakeApi()
    refused = ApiError("POST", JOBS, 500, {"message": "connection refused"})
    fake.answers = [refused, {"spec": {}}, {"spec": {"suspend": True}}]
    prove(prove_webhooks, fake)
    assert fake.dry_runs == 3
    assert fake.stored == {}


@pytest.mark.usefixtures("no_patience")
def test_a_webhook_that_is_not_called_is_told_with_kueues_log() -> None:
    fake = FakeApi()
    fake.answers = [{"spec": {"suspend": False}}] * 1000
    with pytest.raises(ClusterError, match=r"accepted, but not suspended\n.*\nthe log of kueue"):
        prove(prove_webhooks, fake)


@pytest.mark.parametrize("version", ["v1beta2", "v1beta1"])
def test_controllers_are_proven_once_both_have_looked_and_the_probe_goes(version: str) -> None:
    fake = FakeApi(kueue_at=2, kuberay_at=3, workloads=version)
    prove(prove_controllers, fake)
    assert fake.looks == 3
    assert fake.stored == {}


@pytest.mark.usefixtures("no_patience")
@pytest.mark.parametrize(
    ("kueue_at", "kuberay_at", "idle"), [(10**9, 1, "kueue"), (1, 10**9, "kuberay"), (10**9, 10**9, "kueue")]
)
def test_the_one_that_does_nothing_is_told_with_its_log_and_the_probe_goes(
    kueue_at: int, kuberay_at: int, idle: str
) -> None:
    fake = FakeApi(kueue_at=kueue_at, kuberay_at=kuberay_at)
    with pytest.raises(ClusterError, match=rf"^{idle} did nothing about a queued RayJob (.|\n)*the log of {idle}"):
        prove(prove_controllers, fake)
    assert fake.stored == {}


def test_an_api_server_that_fails_is_told_as_that_and_the_probe_goes() -> None:
    fake = FakeApi()
    fake.failure = ClusterError("no answer")
    with pytest.raises(ClusterError, match="no answer"):
        prove(prove_controllers, fake)
    assert fake.stored == {}
