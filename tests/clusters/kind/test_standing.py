"""A kind cluster that was left up, seen from outside: status, logs and down."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from raykueue.cli import main
from raykueue.clusters.deployments import Deployments
from raykueue.clusters.folder import ClusterFolder, clusters
from raykueue.clusters.kind.cluster import KindCluster
from raykueue.clusters.kind.ingredients import BACKEND, Ingredients
from raykueue.errors import EXIT_INFRA, EXIT_OK, EXIT_USAGE
from raykueue.run import command
from raykueue.toolchain.lock import load_versions
from tests.clusters.kind.tools import Tools


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tools: Tools) -> ClusterFolder:
    monkeypatch.setenv("RAYKUEUE_STATE", str(tmp_path / "state"))
    folder = ClusterFolder.named("real")
    folder.path.mkdir()
    made = Ingredients(tools.folder / "kind", tools.folder / "kubectl", "node:1", [], [], tmp_path / "archives")
    KindCluster(folder, made).detach()
    about = {"backend": BACKEND, "pair": load_versions().default.versions(), "started": time.time()}
    folder.describe({**about, "kubeconfig": str(folder.path / "kubeconfig")})
    return folder


def test_status_counts_its_nodes(kept: ClusterFolder, tools: Tools, capsys: pytest.CaptureFixture[str]) -> None:
    tools.answer("ps", out="raykueue-real-worker running\nraykueue-real-control-plane exited")
    assert main(["status"]) == EXIT_OK
    assert "1/2 (raykueue-real-control-plane ended)" in capsys.readouterr().out


def test_status_says_that_its_nodes_are_gone(
    kept: ClusterFolder, tools: Tools, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status"]) == EXIT_OK
    assert "its nodes are gone" in capsys.readouterr().out


def test_down_removes_it_by_its_own_name(kept: ClusterFolder, tools: Tools) -> None:
    assert main(["down", "real"]) == EXIT_OK
    assert [call[1] for call in tools.calls] == ["delete", "network"]
    assert "raykueue-real" in tools.calls[0]
    assert clusters() == []


def test_down_says_what_docker_says_and_can_be_tried_again(
    kept: ClusterFolder, tools: Tools, capsys: pytest.CaptureFixture[str]
) -> None:
    tools.answer("delete", err="Cannot connect to the Docker daemon", code=1, times=1)
    assert main(["down", "real"]) == EXIT_INFRA
    assert "cluster real can't be removed: " in capsys.readouterr().err
    assert main(["down", "real"]) == EXIT_OK


def test_up_again_starts_nothing_and_another_backend_is_refused(
    kept: ClusterFolder, tools: Tools, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(command, "bring_up")
    tools.answer("ps", out="raykueue-real-worker running")
    assert main(["up", "real", "--cluster", "kind"]) == EXIT_OK
    assert "cluster real was up already" in capsys.readouterr().out
    assert main(["up", "real"]) == EXIT_USAGE
    assert "cluster real is up, of --cluster kind: give yours another name" in capsys.readouterr().err


def test_logs_are_asked_for_where_it_runs(
    kept: ClusterFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Deployments, "__init__", lambda *_: None)
    monkeypatch.setattr(Deployments, "logs", lambda _self, name, lines: f"    {lines} lines of {name}")
    monkeypatch.setattr("raykueue.run.backends.Kind.assemble", lambda *_: type("A", (), {"components": lambda _: []})())
    assert main(["logs", "kueue", "real", "-n", "3"]) == EXIT_OK
    assert capsys.readouterr().out == "3 lines of kueue\n"
    assert main(["logs", "etcd", "real"]) == EXIT_USAGE
    assert "it has kueue, kuberay, and `kind export logs --name raykueue-real`" in capsys.readouterr().err
