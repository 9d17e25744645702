from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from raykueue.clusters.kind import commands as commands_module
from raykueue.clusters.kind.commands import CommandFailed, Commands
from raykueue.clusters.kind.config import WORKER_LABEL, config, fake_gpus, workers
from raykueue.clusters.kind.driver import check_extra, kind_cluster
from raykueue.errors import ClusterError
from tests.clusters.kind.tools import Tools

NAME = "raykueue-dev"


@pytest.fixture
def driver(extra: None, tools: Tools, commands: Commands, tmp_path: Path) -> Any:
    return kind_cluster(NAME, tmp_path / "k", "node:1", tools.folder / "kind", tools.folder / "kubectl", commands)


def test_without_the_extra_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytest_kind", None)
    with pytest.raises(ClusterError, match=r"needs the extra `kind` .*: pip install 'raykueue\[kind\]'"):
        check_extra()


def test_nodes_are_created_with_all_that_was_asked_for(driver: Any, tools: Tools, tmp_path: Path) -> None:
    driver.create(tmp_path / "kind.yaml")
    kubeconfig = str(tmp_path / "k")
    assert tools.calls == [
        [
            *("kind", "create", "cluster", "--name", NAME, "--kubeconfig", kubeconfig, "--image", "node:1"),
            *("--wait", "180s", "--retain", "--config", str(tmp_path / "kind.yaml")),
        ]
    ]
    assert tools.environments[0]["KUBECONFIG"] == str(tmp_path / "kind.kubeconfig")
    assert tools.environments[0]["KIND_EXPERIMENTAL_DOCKER_NETWORK"] == NAME


def test_a_port_that_was_taken_is_tried_again_on_clean_ground(
    driver: Any, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands_module, "wait_exponential", lambda **_: lambda _state: 0.0)
    tools.answer("create", err="port is already allocated", code=1, times=1)
    driver.create()
    assert [call[1] for call in tools.calls] == ["create", "delete", "create"]


def test_it_is_deleted_by_its_own_name_and_kubeconfig(driver: Any, tools: Tools, tmp_path: Path) -> None:
    driver.delete()
    assert tools.calls == [["kind", "delete", "cluster", "--name", NAME, "--kubeconfig", str(tmp_path / "k")]]


def test_images_go_into_the_nodes_that_are_named(driver: Any, tools: Tools, tmp_path: Path) -> None:
    driver.load_archive(tmp_path / "a.tar", ["one", "two"])
    words = ["kind", "load", "image-archive", str(tmp_path / "a.tar"), "--name", NAME, "--nodes", "one,two"]
    assert tools.calls == [words]


def test_logs_are_exported_into_a_folder(driver: Any, tools: Tools, tmp_path: Path) -> None:
    driver.export_logs(tmp_path / "logs")
    assert tools.calls == [["kind", "export", "logs", str(tmp_path / "logs"), "--name", NAME]]


def test_kubectl_is_ours_and_sees_the_cluster_by_our_kubeconfig(driver: Any, tools: Tools, tmp_path: Path) -> None:
    text = driver.seen_by_kubectl(tmp_path / "admin")
    assert f"{tools.folder / 'kubectl'} {tmp_path / 'admin'} get nodes,pods" in text


def test_nothing_of_pytest_kinds_own_is_left_in_the_working_directory(driver: Any, tmp_path: Path) -> None:
    assert not (tmp_path / ".pytest-kind").exists()


def test_what_kind_says_last_is_in_the_error(driver: Any, tools: Tools) -> None:
    tools.answer("create", err="ERROR: failed to create cluster: could not find a log line", code=1)
    with pytest.raises(
        CommandFailed, match=r"(?s)creating kind cluster raykueue-dev failed: .*could not find a log line"
    ):
        driver.create()


def test_a_cluster_has_one_control_plane_and_two_workers_that_a_flavor_can_tell_apart() -> None:
    document = yaml.safe_load(config(NAME))
    assert [node["role"] for node in document["nodes"]] == ["control-plane", "worker", "worker"]
    assert [node.get("labels", {}).get(WORKER_LABEL) for node in document["nodes"]] == [None, "1", "2"]
    assert document["networking"]["apiServerAddress"] == "127.0.0.1"
    [kubelet] = document["kubeadmConfigPatches"]
    assert yaml.safe_load(kubelet) == {"kind": "KubeletConfiguration", "containerLogMaxSize": "100Mi"}
    assert document["name"] == NAME
    assert workers(NAME) == ["raykueue-dev-worker", "raykueue-dev-worker2"]
    assert fake_gpus()["status"]["capacity"] == fake_gpus()["status"]["allocatable"]
