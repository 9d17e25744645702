from __future__ import annotations

from typing import Any

import pytest

from raykueue.clusters.kind import nodes as nodes_module
from raykueue.clusters.kind.nodes import Nodes
from raykueue.errors import ClusterError


def pod(name: str, phase: str = "Running", **metadata: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, **metadata}, "status": {"phase": phase}}


class Node:
    """Docker and the API server of a cluster with one node, whose kubelet answers when it is asked often enough."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.answers: list[str] = []
        self.ready = "True"

    def kill(self, node: str) -> None:
        self.done.append(f"kill {node}")

    def start(self, node: str) -> None:
        self.done.append(f"start {node}")

    def restart_unit(self, node: str, unit: str) -> None:
        self.done.append(f"restart {unit} of {node}")

    def get(self, path: str, **query: str) -> Any:
        if path == "/api/v1/pods":
            assert query == {"fieldSelector": "spec.nodeName=worker"}
            return {"items": [pod("head"), pod("over", phase="Succeeded"), pod("going", deletionTimestamp="now")]}
        assert path == "/api/v1/nodes/worker/proxy/pods"
        answer = self.answers.pop(0) if self.answers else "connection refused"
        if answer not in ("nothing", "all"):
            raise ClusterError(answer)
        return {"items": [pod("head")] if answer == "all" else None}

    def until(self, _access: Any, path: str, reached: Any, _seconds: float, **_: Any) -> Any:
        assert path == "/api/v1/nodes"
        if (
            found := reached({"worker": {"status": {"conditions": [{"type": "Ready", "status": self.ready}]}}})
        ) is None:
            raise TimeoutError
        return found


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    node = Node()
    monkeypatch.setattr(nodes_module, "load_access", lambda _: None)
    monkeypatch.setattr(nodes_module, "Api", lambda _: node)
    monkeypatch.setattr(nodes_module, "until", node.until)
    monkeypatch.setattr(nodes_module, "READY_SECONDS", 0.2)
    monkeypatch.setattr(nodes_module, "_ASK_SECONDS", 0.001)
    return node


@pytest.fixture
def nodes(node: Any) -> Nodes:
    anywhere: Any = None
    return Nodes(node, anywhere, lambda: None)


def test_a_kubelet_is_restarted_once_it_knows_its_pods(nodes: Nodes, node: Node) -> None:
    node.answers = ["connection refused", "nothing", "all"]
    nodes.restart_kubelet("worker")
    assert node.done == ["restart kubelet of worker"]
    assert node.answers == []


def test_a_node_is_lost_at_once_and_found_once_it_is_ready(nodes: Nodes, node: Node) -> None:
    nodes.lose("worker")
    node.answers = ["all"]
    nodes.find("worker")
    assert node.done == ["kill worker", "start worker"]


def test_a_kubelet_that_does_not_come_back_is_told_with_what_was_heard(nodes: Nodes) -> None:
    with pytest.raises(ClusterError, match=r"the kubelet of node worker is not back .*: connection refused"):
        nodes.restart_kubelet("worker")


def test_a_node_that_is_not_ready_is_told(nodes: Nodes, node: Node) -> None:
    node.answers, node.ready = ["all"], "Unknown"
    with pytest.raises(ClusterError, match="node worker is not Ready"):
        nodes.find("worker")
