from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from raykueue.clusters.embedded import kwok
from raykueue.clusters.embedded.controlplane import Command, ControlPlane
from raykueue.clusters.embedded.ports import Ports


@pytest.fixture
def plane(tmp_path: Path) -> ControlPlane:
    return ControlPlane(defaultdict(lambda: Path("/bin/x")), tmp_path, Ports())


def commands(plane: ControlPlane) -> list[Command]:
    config = plane.folder / "kubeconfig"
    return [
        plane.etcd(),
        plane.apiserver(),
        plane.controller_manager(config),
        plane.scheduler(config),
        plane.kwok(config, plane.folder / "stages.yaml"),
    ]


def test_nothing_listens_anywhere_but_on_loopback(plane: ControlPlane) -> None:
    for command in commands(plane):
        for arg in command.argv[1:]:
            flag, _, value = arg.partition("=")
            if "address" in flag or "urls" in flag or flag == "--etcd-servers":
                assert "127.0.0.1" in value, arg
            if flag == "--secure-port" and command.name != "kube-apiserver":
                assert value == "0"


def test_client_and_server_agree_on_their_ports(plane: ControlPlane) -> None:
    etcd, apiserver, *_ = commands(plane)
    client = f"http://127.0.0.1:{plane.ports('etcd')}"
    assert f"--listen-client-urls={client}" in etcd.argv
    assert f"--etcd-servers={client}" in apiserver.argv


def test_everything_that_is_written_is_below_the_clusters_folder(plane: ControlPlane) -> None:
    paths = [
        value for command in commands(plane) for arg in command.argv[1:] if (value := arg.partition("=")[2])[:1] == "/"
    ]
    assert paths
    assert all(Path(path).is_relative_to(plane.folder) for path in paths if path != "/bin/x")


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for name in kwok._SHIPPED_STAGES:
        path = tmp_path / "kustomize" / "stage" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump({"kind": "Stage", "metadata": {"name": path.stem}}))
    return tmp_path


def test_no_stage_ends_a_pod_that_nobody_deletes(sources: Path) -> None:
    stages: list[dict[str, Any]] = list(yaml.safe_load_all(kwok.stages(sources)))
    assert [stage["metadata"]["name"] for stage in stages] == [
        "node-initialize",
        "node-heartbeat-with-lease",
        "pod-ready",
        "pod-delete",
        "pod-delete-slowly",
    ]
    for stage in stages[3:]:
        conditions = stage["spec"]["selector"]["matchExpressions"]
        assert {"key": ".metadata.deletionTimestamp", "operator": "Exists"} in conditions


def test_a_pod_is_deleted_by_one_stage_whether_it_is_told_to_be_slow_or_not(sources: Path) -> None:
    at_once, slowly = list(yaml.safe_load_all(kwok.stages(sources)))[3:]
    by_annotation = [
        next(
            one["operator"]
            for one in stage["spec"]["selector"]["matchExpressions"]
            if kwok.STOP_ANNOTATION in one["key"]
        )
        for stage in (at_once, slowly)
    ]
    assert by_annotation == ["DoesNotExist", "Exists"]
    assert "delay" not in at_once["spec"]
    assert kwok.STOP_ANNOTATION in slowly["spec"]["delay"]["durationFrom"]["expressionFrom"]


def test_nodes_are_kwoks_own_and_each_has_its_hostname() -> None:
    nodes = kwok.nodes(3)
    assert len({node["metadata"]["name"] for node in nodes}) == 3
    for node in nodes:
        assert node["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == node["metadata"]["name"]
        assert node["status"]["allocatable"] == node["status"]["capacity"]
