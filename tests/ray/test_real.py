"""Real Ray's control against an API server and containers that a test plays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from raykueue.errors import ClusterError, InfraError, UsageError
from raykueue.kube.client import Api, ApiError
from raykueue.kube.exec import Container, Ran
from raykueue.ray import dashboard as dashboard_module
from raykueue.ray.control import RayControl
from raykueue.ray.manifests import marked
from raykueue.ray.real import READ_SECONDS, RealRay

JOBS = "/api/v1/namespaces/ns/pods/http:head:8265/proxy/api/jobs"


class Cluster:
    """One RayJob with a head and a worker, whose Ray job runs."""

    def __init__(self, *, sidecar: bool = False) -> None:
        self.rayjob: dict[str, Any] = {
            "metadata": {"namespace": "ns", "name": "job"},
            "status": {"jobDeploymentStatus": "Running", "rayClusterName": "cluster", "jobId": "job-x"},
        }
        submitter = [{"name": "ray-job-submitter"}] if sidecar else []
        self.pods = [pod("head", "10.0.0.1", [{"name": "ray-head"}, *submitter]), pod("worker", "10.0.0.2")]
        self.details: dict[str, Any] = {
            "status": "RUNNING",
            "driver_agent_http_address": "http://10.0.0.1:52365",
            "start_time": 17,
            "end_time": None,
            "message": "Job is currently running.",
        }
        self.resets = 0
        """So often the dashboard's connection breaks."""
        self.done: list[Any] = []
        self.exit_codes: dict[str, int] = {}
        """First words of a command: what it ends with."""

    def get(self, path: str, **query: str) -> dict[str, Any]:
        if path == f"{JOBS}/job-x" and self.resets:
            self.resets -= 1
            raise ApiError("GET", path, 503, {"reason": "ServiceUnavailable", "message": "connection reset by peer"})
        if path == f"{JOBS}/job-x" and self.details:
            return self.details
        if path == "/apis/ray.io/v1/namespaces/ns/rayjobs/job" and self.rayjob:
            return self.rayjob
        if path == "/api/v1/namespaces/ns/pods":
            assert query == {"labelSelector": "ray.io/cluster=cluster"}
            return {"items": self.pods}
        raise ApiError("GET", path, 404, {"reason": "NotFound"})

    def request(self, method: str, path: str) -> dict[str, Any]:
        self.done.append((method, path))
        return {"stopped": self.details["status"] == "RUNNING"}

    def __call__(self, container: Container, command: Sequence[str], seconds: float = 0.0) -> Ran:  # noqa: ARG002 - as Exec names it
        self.done.append((container, list(command)))
        codes = [code for start, code in self.exit_codes.items() if " ".join(command).startswith(start)]
        return Ran(codes[0] if codes else 0, "its last words")

    @property
    def ray(self) -> RealRay:
        return RealRay(cast("Api", self), self, "2.52.0")


def pod(
    role: str, address: str, containers: list[dict[str, Any]] | None = None, phase: str = "Running"
) -> dict[str, Any]:
    labels = {"ray.io/cluster": "cluster", "ray.io/node-type": role}
    return {
        "metadata": {"namespace": "ns", "name": role, "labels": labels},
        "spec": {"containers": containers or [{"name": f"ray-{role}"}]},
        "status": {"phase": phase, "podIP": address},
    }


HEAD, SIDECAR = Container("ns", "head", "ray-head"), Container("ns", "head", "ray-job-submitter")


def test_real_ray_is_a_ray_control_that_prepares_a_manifest() -> None:
    control: RayControl = Cluster().ray
    prepared = control.prepared({"spec": {"entrypoint": "python train.py"}})
    assert [one.field for one in prepared.replaced] == ["spec.entrypoint"]


def test_the_entrypoint_is_given_its_exit_code_in_the_container_that_runs_it() -> None:
    cluster = Cluster()
    cluster.ray.finish("ns", "job", 3)
    assert cluster.done == [(HEAD, marked(3, READ_SECONDS))]


def test_an_entrypoint_that_runs_on_a_worker_is_found_there() -> None:
    cluster = Cluster()
    cluster.details["driver_agent_http_address"] = "http://10.0.0.2:52365"
    cluster.ray.finish("ns", "job")
    assert cluster.done[0][0] == Container("ns", "worker", "ray-worker")


def test_a_ray_that_does_not_tell_where_has_it_on_the_head() -> None:
    cluster = Cluster()
    cluster.details["driver_agent_http_address"] = None
    cluster.ray.finish("ns", "job")
    assert cluster.done[0][0] == HEAD


def test_an_entrypoint_at_no_pod_of_the_cluster_is_infrastructure() -> None:
    cluster = Cluster()
    cluster.pods[1] = pod("worker", "10.0.0.2", phase="Failed")
    cluster.details["driver_agent_http_address"] = "http://10.0.0.2:52365"
    with pytest.raises(InfraError, match=r"runs at 10\.0\.0\.2, which is no running pod"):
        cluster.ray.finish("ns", "job")


def gone(cluster: Cluster) -> None:
    cluster.rayjob = {}


def not_started(cluster: Cluster) -> None:
    cluster.rayjob["status"] = {"jobDeploymentStatus": "Suspended"}


def without_head(cluster: Cluster) -> None:
    cluster.pods = cluster.pods[1:]


def unknown_to_ray(cluster: Cluster) -> None:
    cluster.details = {}


def pending(cluster: Cluster) -> None:
    cluster.details["status"] = "PENDING"


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (gone, "is unknown: not created yet, or deleted"),
        (not_started, r"nothing was started for it yet \(jobDeploymentStatus Suspended\)"),
        (without_head, "the head pod of its RayCluster cluster does not run"),
        (unknown_to_ray, "Ray job job-x is unknown to its cluster"),
        (pending, "Ray job job-x is PENDING"),
    ],
)
@pytest.mark.parametrize("do", ["finish", "stop"])
def test_a_job_that_does_not_run_can_not_be_ended(made: Callable[[Cluster], None], told: str, do: str) -> None:
    cluster = Cluster()
    made(cluster)
    with pytest.raises(UsageError, match=f"RayJob ns/job.*{told}"):
        getattr(cluster.ray, do)("ns", "job")
    assert cluster.done == []


def test_real_ray_can_not_be_told_in_advance() -> None:
    cluster = Cluster()
    with pytest.raises(UsageError, match="wait until the job is Running"):
        cluster.ray.finish("ns", "job", when_running=True)
    assert cluster.done == []


@pytest.mark.parametrize(("code", "told"), [(124, "nobody read it within 20 s"), (2, "its last words")])
def test_an_exit_code_that_is_not_taken_is_infrastructure(code: int, told: str) -> None:
    cluster = Cluster()
    cluster.exit_codes["sh -c"] = code
    with pytest.raises(ClusterError, match=f"did not take exit code 0: {told}"):
        cluster.ray.finish("ns", "job")


def test_a_sidecar_stands_still_until_the_end_was_read() -> None:
    cluster = Cluster(sidecar=True)
    cluster.ray.finish("ns", "job", 1, after_read=lambda: cluster.done.append("read"))
    stop, cont = (["bash", "-c", f"kill -{signal} -1"] for signal in ("STOP", "CONT"))
    assert cluster.done == [(SIDECAR, stop), (HEAD, marked(1, READ_SECONDS)), "read", (SIDECAR, cont)]


def test_a_sidecar_goes_on_even_if_the_end_is_never_read() -> None:
    cluster = Cluster(sidecar=True)

    def never() -> None:
        raise TimeoutError("not read")

    with pytest.raises(TimeoutError, match="not read"):
        cluster.ray.finish("ns", "job", 1, after_read=never)
    assert cluster.done[-1] == (SIDECAR, ["bash", "-c", "kill -CONT -1"])


def test_a_sidecar_that_can_not_be_held_is_infrastructure() -> None:
    cluster = Cluster(sidecar=True)
    cluster.exit_codes["bash -c kill -STOP"] = 1
    with pytest.raises(ClusterError, match="signal STOP could not be sent in ns/head/ray-job-submitter"):
        cluster.ray.finish("ns", "job", 1, after_read=lambda: None)


def test_a_submitter_pod_needs_no_care_but_the_read_is_waited_for() -> None:
    cluster = Cluster()
    cluster.ray.finish("ns", "job", 1, after_read=lambda: cluster.done.append("read"))
    assert cluster.done == [(HEAD, marked(1, READ_SECONDS)), "read"]


def test_a_stop_is_asked_of_rays_own_api() -> None:
    cluster = Cluster()
    cluster.ray.stop("ns", "job")
    assert cluster.done == [("POST", f"{JOBS}/job-x/stop")]


def test_the_state_is_what_the_dashboard_says() -> None:
    cluster = Cluster()
    cluster.details |= {"status": "SUCCEEDED", "end_time": 42}
    assert cluster.ray.state("ns", "job") == {
        "submission_id": "job-x",
        "status": "SUCCEEDED",
        "message": "Job is currently running.",
        "head": "head",
        "times": {"submitted": 17, "ended": 42},
    }


def test_a_dashboard_that_was_not_reached_is_asked_again_and_given_up_at_some_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dashboard_module, "_AGAIN_SECONDS", 0.001)
    cluster = Cluster()
    cluster.resets = 2
    assert cluster.ray.state("ns", "job")["status"] == "RUNNING"
    monkeypatch.setattr(dashboard_module, "PATIENCE_SECONDS", 0.01)
    cluster.resets = 1_000_000
    with pytest.raises(ClusterError, match=r"Ray's dashboard does not answer: .* 503 .*connection reset by peer"):
        cluster.ray.state("ns", "job")


def test_a_job_that_its_cluster_does_not_know_has_no_status() -> None:
    cluster = Cluster()
    cluster.details = {}
    assert cluster.ray.state("ns", "job")["status"] is None


def test_a_dashboard_at_another_port_is_asked_there() -> None:
    cluster = Cluster()
    cluster.pods[0]["spec"]["containers"][0]["ports"] = [{"name": "dashboard", "containerPort": 9000}]
    assert cluster.ray.state("ns", "job")["status"] is None  # nobody listens at 8265
