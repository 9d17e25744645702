from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from raykueue.errors import ClusterError
from raykueue.kube.apply import collection, create, ensure, location
from raykueue.kube.client import Api, ApiError
from raykueue.model.kinds import KINDS


class FakeApi:
    """Stores what is created."""

    def __init__(self) -> None:
        self.created: list[str] = []
        self.refused: dict[str, ClusterError] = {}
        self._lock = threading.Lock()

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        url = f"{path}/{body['metadata']['name']}"
        if url in self.refused:
            raise self.refused[url]
        with self._lock:
            self.created.append(url)
        return {"stored": body}


def manifest(version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


@pytest.mark.parametrize(
    ("version", "kind", "namespace", "path"),
    [
        ("v1", "Pod", "", "/api/v1/namespaces/default/pods"),
        ("v1", "Secret", "a", "/api/v1/namespaces/a/secrets"),
        ("v1", "Namespace", "", "/api/v1/namespaces"),
        ("ray.io/v1", "RayJob", "a", "/apis/ray.io/v1/namespaces/a/rayjobs"),
        ("kueue.x-k8s.io/v1beta1", "Topology", "", "/apis/kueue.x-k8s.io/v1beta1/topologies"),
        ("scheduling.k8s.io/v1", "PriorityClass", "", "/apis/scheduling.k8s.io/v1/priorityclasses"),
        ("networking.k8s.io/v1", "NetworkPolicy", "a", "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies"),
    ],
)
def test_a_manifest_goes_to_its_collection(version: str, kind: str, namespace: str, path: str) -> None:
    assert collection(manifest(version, kind, "x", namespace)) == path
    assert location(manifest(version, kind, "x", namespace)) == f"{path}/x"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_watched_kind_has_the_collection_that_is_watched(kind: Any) -> None:
    for version in kind.versions:
        assert collection(manifest(version, kind.name, "x"), "ns") == kind.path(version, "ns")


def test_the_namespace_that_is_given_is_for_those_without_one() -> None:
    assert collection(manifest("v1", "Pod", "x"), "mine") == "/api/v1/namespaces/mine/pods"
    assert collection(manifest("v1", "Pod", "x", "own"), "mine") == "/api/v1/namespaces/own/pods"


def test_what_was_stored_is_given_back() -> None:
    pod = manifest("v1", "Pod", "x")
    assert create(cast("Api", FakeApi()), pod) == {"stored": pod}


def test_namespaces_are_created_before_everything_else() -> None:
    api = FakeApi()
    pods = [manifest("v1", "Pod", f"p{number}", "ns") for number in range(20)]
    ensure(cast("Api", api), [*pods, manifest("v1", "Namespace", "ns")])
    assert api.created[0] == "/api/v1/namespaces/ns"
    assert len(api.created) == 21


def test_what_exists_stays_and_any_other_refusal_is_raised() -> None:
    api = FakeApi()
    api.refused["/api/v1/namespaces/ns"] = ApiError("POST", "", 409, {"reason": "AlreadyExists"})
    ensure(cast("Api", api), [manifest("v1", "Namespace", "ns"), manifest("v1", "Pod", "a", "ns")])
    assert api.created == ["/api/v1/namespaces/ns/pods/a"]
    api.refused["/api/v1/namespaces/ns/pods/b"] = ApiError("POST", "", 409, {"reason": "Conflict"})
    with pytest.raises(ApiError, match="Conflict"):
        ensure(cast("Api", api), [manifest("v1", "Pod", "b", "ns"), manifest("v1", "Pod", "c", "ns")])
