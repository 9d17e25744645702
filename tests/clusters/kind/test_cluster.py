"""A kind cluster whose nodes are made by a script: what is started after what, and what a failure leaves."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from subprocess import CalledProcessError, TimeoutExpired
from types import SimpleNamespace
from typing import Any

import pytest

from raykueue.clusters.folder import ClusterFolder, clusters, made_by, reclaim_dead
from raykueue.clusters.kind import cluster as cluster_module
from raykueue.clusters.kind.bootstrap import Bootstrap, plain_kubeconfig
from raykueue.clusters.kind.cluster import KindCluster
from raykueue.clusters.kind.ingredients import Ingredients, node_prefix
from raykueue.clusters.protocol import ComponentSpec, Container, Faults
from raykueue.errors import ClusterError
from tests.clusters.kind.tools import Tools

ROOMY = '{"DockerRootDir": "/not/here", "MemTotal": 68719476736}'


class Played:
    """Deployments that are ready at once."""

    done: list[str]

    def __init__(self, _kubeconfig: Path, specs: Sequence[ComponentSpec], _look: Any = None) -> None:
        self.specs = {spec.name: spec for spec in specs}

    def apply(self, name: str) -> None:
        Played.done.append(f"apply {name}")

    def wait_ready(self, name: str) -> None:
        Played.done.append(f"{name} is ready")

    def containers(self, name: str) -> list[Container]:
        return [Container(f"{name}-1", name, f"{name}:1", f"{name}:1")]

    def first_words(self, name: str) -> list[str]:
        return [f"{name} starts"]


def spec(name: str, image: str) -> ComponentSpec:
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "system"},
        "spec": {"template": {"metadata": {}, "spec": {"containers": [{"name": name, "image": image}]}}},
    }
    return ComponentSpec(name, None, deployed=[deployment], objects=[{"kind": "Role", "metadata": {"name": name}}])


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYKUEUE_STATE", str(tmp_path / "state"))


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the steps did that need an API server, in order."""
    Played.done = []
    monkeypatch.setattr(cluster_module, "Deployments", Played)
    for name in ("wait_api", "establish", "apply", "claim_gpus", "free_cpu"):
        monkeypatch.setattr(Bootstrap, name, lambda *_, name=name: Played.done.append(name))
    return Played.done


@pytest.fixture
def made(tools: Tools, tmp_path: Path) -> Ingredients:
    tools.answer("info", out=ROOMY)
    tools.answer("inspect", out="sha256:0123456789abcdef")
    tools.answer("save", makes="--output")
    controllers, archives = ["kueue:1", "kuberay:1"], tmp_path / "archives"
    return Ingredients(tools.folder / "kind", tools.folder / "kubectl", "node:1", controllers, ["ray:1"], archives)


PARTS = [spec("kueue", "kueue:1"), spec("kuberay", "kuberay:1")]


def test_everything_is_done_and_a_component_starts_after_its_image_is_there(
    extra: None, made: Ingredients, done: list[str], tools: Tools
) -> None:
    cluster = KindCluster(ClusterFolder.named("dev"), made)
    cluster.start([], PARTS)
    assert done[0] == "wait_api"
    assert {"establish", "claim_gpus", "kueue is ready", "kuberay is ready"} <= set(done)
    ends = {timing.name: timing.end for timing in cluster.timings}
    begins = {timing.name: timing.begin for timing in cluster.timings}
    assert begins["kueue"] >= max(ends["load kueue:1"], ends["crds"], ends["objects"], ends["webhooks"])
    assert begins["load ray:1"] >= ends["load kuberay:1"], "what is needed first is loaded first"
    loads = {Path(call[3]).name.split("-")[0]: call[-1] for call in tools.calls if call[1] == "load"}
    assert loads == {
        "kueue": "raykueue-dev-control-plane",
        "kuberay": "raykueue-dev-control-plane",
        "ray": "raykueue-dev-worker,raykueue-dev-worker2",
    }
    folder = ClusterFolder.named("dev")
    assert made_by(folder) == "kind"
    assert isinstance(cluster, Faults)
    cluster.stop()
    assert not folder.path.exists()
    assert tools.calls[-2][1:3] == ["delete", "cluster"]
    assert tools.calls[-1] == ["docker", "network", "rm", "raykueue-dev"]


def test_the_folder_says_how_to_remove_the_nodes_before_there_are_any(
    extra: None, made: Ingredients, done: list[str], tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ClusterFolder.named("dev")
    seen: list[Any] = []

    def create(_: Bootstrap) -> None:
        seen.extend(folder.removals())
        raise ClusterError("no nodes today")

    monkeypatch.setattr(Bootstrap, "create_nodes", create)
    cluster = KindCluster(folder, made)
    with pytest.raises(ClusterError, match="no nodes today"):
        cluster.start([], PARTS)
    assert [removal.argv[1] for removal in seen] == ["delete", "network"]
    assert seen[0].argv[-4:] == ["--name", "raykueue-dev", "--kubeconfig", str(folder.path / "kind.kubeconfig")]
    cluster.stop()
    assert clusters() == []


def test_one_step_that_fails_ends_the_commands_of_the_others(
    extra: None, made: Ingredients, done: list[str], tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.answer("create", seconds=60)

    def fail(_: Bootstrap) -> None:
        while not any(call[1] == "create" for call in tools.calls):
            threading.Event().wait(0.01)
        raise ClusterError("the API server does not answer")

    monkeypatch.setattr(Bootstrap, "wait_api", fail)
    with pytest.raises(ClusterError, match="the API server does not answer"):
        KindCluster(ClusterFolder.named("dev"), made).start([], PARTS)


def test_a_run_that_is_ended_meanwhile_ends_its_start(extra: None, made: Ingredients, done: list[str]) -> None:
    def log(line: str) -> None:
        assert line == ""
        raise ClusterError("the run was ended")

    with pytest.raises(ClusterError, match=r"the run was ended|not wanted any more"):
        KindCluster(ClusterFolder.named("dev"), made, log).start([], PARTS)


def test_what_a_killed_run_left_is_removed_by_its_own_name_and_a_kept_one_is_not(
    made: Ingredients, tools: Tools
) -> None:
    killed, kept = ClusterFolder.named("killed"), ClusterFolder.named("kept")
    for folder in (killed, kept):
        folder.path.mkdir()
        folder.record(KindCluster(folder, made)._removals())
    KindCluster(kept, made).detach()
    assert kept.alive()
    assert not killed.alive()
    assert reclaim_dead() == {"killed": ["its nodes"]}
    assert [call[1:] for call in tools.calls] == [
        ["delete", "cluster", "--name", "raykueue-killed", "--kubeconfig", str(killed.path / "kind.kubeconfig")],
        ["network", "rm", "raykueue-killed"],
    ]
    assert [folder.name for folder in clusters()] == ["kept"]


def test_what_runs_in_it_is_told_by_its_pods_and_nodes(
    made: Ingredients, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [{"metadata": {"name": name}, "status": {"nodeInfo": {"kubeletVersion": "v1.34.4"}}} for name in "ab"]
    monkeypatch.setattr(cluster_module, "load_access", lambda _: None)
    monkeypatch.setattr(
        cluster_module, "Api", lambda _: SimpleNamespace(get={"/api/v1/nodes": {"items": nodes}}.__getitem__)
    )
    cluster = KindCluster(ClusterFolder.named("dev"), made)
    cluster.attach(PARTS)
    assert cluster.containers()["kueue"] == [Container("kueue-1", "kueue", "kueue:1", "kueue:1")]
    assert set(cluster.containers()) == {"kueue", "kuberay"}
    assert cluster.kubelets() == {"a": "v1.34.4", "b": "v1.34.4"}
    assert cluster.first_words("kuberay") == ["kuberay starts"]


def test_preflight_looks_at_the_extra_and_at_docker(extra: None, tools: Tools) -> None:
    tools.answer("info", err="Cannot connect to the Docker daemon", code=1)
    with pytest.raises(ClusterError, match="Docker does not answer"):
        KindCluster.preflight(ClusterFolder.named("dev"))


def test_logs_are_exported_also_when_its_commands_were_given_up(
    extra: None, made: Ingredients, tools: Tools, tmp_path: Path
) -> None:
    cluster = KindCluster(ClusterFolder.named("dev"), made)
    cluster._commands.give_up()
    cluster.export_logs(tmp_path / "logs")
    assert ["kind", "export", "logs", str(tmp_path / "logs"), "--name", "raykueue-dev"] in tools.calls


@pytest.mark.parametrize("nodes", [True, False])
def test_what_kubectl_shows_is_kept_beside_the_logs_also_without_them(
    nodes: bool, extra: None, made: Ingredients, tools: Tools, tmp_path: Path
) -> None:
    if not nodes:
        tools.answer("export", err="ERROR: unknown cluster", code=1)
    cluster = KindCluster(ClusterFolder.named("dev"), made)
    cluster.kubeconfig.parent.mkdir(parents=True)
    cluster.kubeconfig.touch()
    with contextlib.nullcontext() if nodes else pytest.raises(ClusterError, match="unknown cluster"):
        cluster.export_logs(tmp_path / "logs")
    assert "get nodes,pods" in (tmp_path / "logs" / "kubectl.txt").read_text()


@pytest.mark.parametrize("error", [CalledProcessError(1, "kubectl"), TimeoutExpired("kubectl", 30)])
def test_an_api_server_that_does_not_answer_kubectl_spoils_no_logs(
    error: Exception, extra: None, made: Ingredients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kubectl(*_: str, **__: Any) -> str:
        raise error

    monkeypatch.setattr(sys.modules["pytest_kind"].KindCluster, "kubectl", kubectl)
    cluster = KindCluster(ClusterFolder.named("dev"), made)
    cluster.kubeconfig.parent.mkdir(parents=True)
    cluster.kubeconfig.touch()
    cluster.export_logs(tmp_path / "logs")
    assert list((tmp_path / "logs").iterdir()) == []


def test_a_name_that_kind_would_not_take_is_refused() -> None:
    with pytest.raises(ClusterError, match="cluster Dev: kind takes lower case only"):
        node_prefix("Dev")


def test_kinds_kubeconfig_is_written_again_in_files(tmp_path: Path) -> None:
    text = json.dumps(
        {
            "clusters": [{"cluster": {"server": "https://127.0.0.1:1", "certificate-authority-data": "Y2E="}}],
            "users": [{"user": {"client-certificate-data": "Y2VydA==", "client-key-data": "a2V5"}}],
        }
    )
    plain_kubeconfig(text, tmp_path / "kubeconfig")
    assert [(tmp_path / name).read_text() for name in ("admin-ca.crt", "admin.crt", "admin.key")] == [
        "ca",
        "cert",
        "key",
    ]
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600
    assert "https://127.0.0.1:1" in (tmp_path / "kubeconfig").read_text()
    with pytest.raises(ClusterError, match="expected a kubeconfig of kind, got one without KeyError"):
        plain_kubeconfig("{}", tmp_path / "kubeconfig")
