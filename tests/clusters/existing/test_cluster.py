"""An existing cluster, played by a small server: what is looked at, made and removed there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from raykueue.clusters.deployments import Deployments
from raykueue.clusters.existing.cluster import ExistingCluster
from raykueue.clusters.folder import ClusterFolder, clusters, reclaim_dead
from raykueue.clusters.protocol import ComponentSpec, Faults
from raykueue.errors import ClusterError
from raykueue.kube.client import ApiError
from tests.clusters.existing.test_installed import KUBERAY, KUEUE
from tests.clusters.server import served


class Theirs:
    """Somebody's cluster."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.allowed = True

    def answer(self, path: str) -> Any:
        match path:
            case "/version":
                return {"gitVersion": "v1.34.4"}
            case "/apis":
                return {"groups": [{"name": "kueue.x-k8s.io"}, {"name": "ray.io"}]}
            case "/apis/apps/v1/deployments":
                return {"items": [KUEUE, KUBERAY]}
            case "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
                return {"status": {"allowed": self.allowed}}
            case _:
                return {}

    def handler(self) -> type[BaseHTTPRequestHandler]:
        theirs = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                theirs.asked.append((self.command, self.path, json.loads(body) if body else None))
                raw = json.dumps(theirs.answer(self.path)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = do_POST = do_DELETE = do_PATCH = handle_any  # noqa: N815 - the names that http.server calls

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def changes(self) -> list[tuple[str, str]]:
        """What was written, but for questions."""
        return [(method, path) for method, path, _ in self.asked if method != "GET" and "accessreviews" not in path]


@pytest.fixture
def theirs() -> Theirs:
    return Theirs()


@pytest.fixture
def cluster(theirs: Theirs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExistingCluster]:
    monkeypatch.setenv("RAYKUEUE_STATE", str(tmp_path / "state"))
    with served(theirs.handler()) as port:
        named = {"name": "dev"}
        document = {
            "clusters": [{**named, "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{**named, "user": {"token": "t"}}],
            "contexts": [{**named, "context": {"cluster": "dev", "user": "dev"}}],
            "current-context": "dev",
        }
        yield ExistingCluster(ClusterFolder.named("run-1"), document)


def test_nothing_is_made_there_but_a_namespace_of_our_own_and_that_is_removed(
    cluster: ExistingCluster, theirs: Theirs
) -> None:
    cluster.start([], [])
    assert theirs.changes() == [("POST", "/api/v1/namespaces")]
    assert theirs.asked[-1][2]["metadata"]["name"] == cluster.probing
    assert cluster.kubeconfig.stat().st_mode & 0o777 == 0o600
    cluster.stop()
    assert theirs.changes()[1:] == [("DELETE", f"/api/v1/namespaces/{cluster.probing}")]
    assert clusters() == []


def test_of_what_runs_there_only_the_controllers_logs_are_read_and_only_if_they_may_be(
    cluster: ExistingCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.start([], [])
    assert (cluster.containers(), cluster.kubelets()) == ({}, {})
    monkeypatch.setattr(Deployments, "first_words", lambda _, name: [f"{name} starts"])
    assert cluster.first_words("kueue") == ["kueue starts"]

    def forbidden(*_: Any) -> list[str]:
        raise ApiError("GET", "/log", 403, {"message": "forbidden"})

    monkeypatch.setattr(Deployments, "first_words", forbidden)
    assert cluster.first_words("kueue") == []
    cluster.stop()


def test_nothing_is_installed(cluster: ExistingCluster, theirs: Theirs) -> None:
    with pytest.raises(ClusterError, match="nothing is installed into an existing cluster"):
        cluster.start([], [ComponentSpec("kueue", None)])
    with pytest.raises(ClusterError, match="the settings of kueue in run-1 are not ours to change"):
        cluster.replace(ComponentSpec("kueue", None))
    assert not isinstance(cluster, Faults), "its controllers are not ours to end"
    assert theirs.asked == []


def test_who_may_not_make_what_the_suite_needs_is_told_at_the_start(cluster: ExistingCluster, theirs: Theirs) -> None:
    theirs.allowed = False
    with pytest.raises(
        ClusterError, match=r"may not create namespaces, clusterqueues\.kueue\.x-k8s\.io, rayjobs\.ray\.io;"
    ):
        cluster.start([], [])
    assert theirs.changes() == []


def test_a_copied_kubeconfig_does_not_outlive_a_killed_run(cluster: ExistingCluster) -> None:
    cluster.start([], [])
    assert reclaim_dead() == {"run-1": []}
    assert not cluster.kubeconfig.exists()
