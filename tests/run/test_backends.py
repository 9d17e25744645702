"""Which cluster a run gets, and what becomes of it and of its settings."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import yaml

from raykueue.clusters.existing import installed
from raykueue.clusters.folder import ClusterFolder
from raykueue.clusters.protocol import ComponentSpec
from raykueue.controllers.settings import DEFAULT, Settings
from raykueue.errors import ClusterError, UsageError
from raykueue.model.node_images import Nodes
from raykueue.run import live as live_module
from raykueue.run.assembly import ExistingAssembly
from raykueue.run.backends import Embedded, Existing, Kind, backend_of, ray_of, remembered
from raykueue.run.live import LiveCluster, bring_up, ended_if_it_fails
from raykueue.run.options import RunOptions
from raykueue.toolchain.lock import load_versions

GATED = Settings(kueue_gates={"A": True})


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYKUEUE_STATE", str(tmp_path / "state"))


def test_a_run_gets_what_it_asks_for() -> None:
    assert backend_of(RunOptions()) == Embedded()
    assert backend_of(RunOptions(cluster="kind", node_image="node:1")) == Kind("node:1")
    assert backend_of(RunOptions(cluster="existing", context="dev")) == Existing("dev")


def test_a_cluster_that_was_left_up_is_driven_by_what_made_it() -> None:
    folder = ClusterFolder.named("dev")
    folder.path.mkdir()
    folder.describe({"backend": "kind"})
    assert backend_of(RunOptions(), folder) == Kind()
    folder.describe({"backend": "cloud"})
    with pytest.raises(ClusterError, match="no backend 'cloud'"):
        backend_of(RunOptions(), folder)


def test_the_nodes_of_a_cluster_that_was_left_up_are_made_from_what_they_were_made_from() -> None:
    folder = ClusterFolder.named("dev")
    folder.path.mkdir()
    folder.describe({"backend": "kind", "node_image": "node:1"})
    assert backend_of(RunOptions(), folder) == Kind("node:1")
    assert backend_of(RunOptions(node_image="node:1"), folder) == Kind("node:1")
    with pytest.raises(UsageError, match="cluster dev were made from node:1, but node:2 was asked for"):
        backend_of(RunOptions(node_image="node:2"), folder)


def test_where_pods_are_real_ray_is() -> None:
    cluster: Any = SimpleNamespace()
    assert ray_of(cluster) == {"real": {}}


def test_the_pair_of_an_existing_cluster_is_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"name": "dev"}
    document = {
        "clusters": [{**named, "cluster": {"server": "https://s"}}],
        "users": [{**named, "user": {"token": "t"}}],
        "contexts": [{**named, "context": {"cluster": "dev", "user": "dev"}}],
    }
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(document))
    there = {"kubernetes": "1.99.0", "kueue": "0.19.2", "kuberay": "1.6.2"}
    monkeypatch.setattr(installed, "look", lambda _: installed.Installed(there, ()))
    backend, versions = Existing("dev", file), load_versions()
    assert backend.pair(versions, RunOptions()).versions() == there
    there["kubernetes"] = versions.default.kubernetes
    assert backend.pair(versions, RunOptions()).klass == versions.default.klass
    with pytest.raises(UsageError, match=r"runs kueue 0\.19\.2, but 0\.16\.2 was asked for"):
        backend.pair(versions, RunOptions(kueue="0.16.2"))


def test_the_settings_of_an_existing_cluster_stay() -> None:
    assembly = ExistingAssembly(load_versions().default)
    assert assembly.controllers(DEFAULT) == []
    with pytest.raises(UsageError, match="keep their settings"):
        assembly.controllers(GATED)


class FakeCluster:
    """What `LiveCluster` does with a cluster."""

    name, kubeconfig, probing, how, tier = "dev", Path("kubeconfig"), "default", "new", "node"

    def __init__(self) -> None:
        self.done: list[str] = []
        self.about: dict[str, Any] = {}
        self.fails = ""

    def start(self, *_: Any) -> None:
        self.done.append("start")
        if self.fails:
            raise ClusterError(self.fails)

    def replace(self, component: ComponentSpec) -> None:
        self.done.append(f"replace {component.name}")

    def export_logs(self, folder: Path) -> None:
        folder.mkdir()
        self.done.append("export")

    def logs(self, _: str) -> str:
        return ""

    def stop(self) -> None:
        self.done.append("stop")

    def close(self) -> None:
        self.done.append("close")


class FakeAssembly:
    pair, lock_digest = replace(load_versions().default, kubernetes="1.34.11"), "5f"
    made_with: ClassVar = {"ray": "2.52.0"}

    nodes = None

    def crds(self) -> list[Any]:
        return []

    def components(self) -> list[Any]:
        return []

    def controllers(self, _: Settings) -> list[ComponentSpec]:
        return [ComponentSpec("kueue", None), ComponentSpec("kuberay", None)]


@pytest.fixture
def proven(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("prove_webhooks", "prove_controllers", "load_access", "Api"):
        monkeypatch.setattr(live_module, name, lambda *_: None)


RECORDING: Any = SimpleNamespace(mark=lambda *_, **__: None)


def live(cluster: FakeCluster, *, stays: bool) -> LiveCluster:
    faked: Any = cluster
    assembly: Any = FakeAssembly()
    return LiveCluster(faked, assembly, stays=stays)


def test_a_cluster_that_stays_gets_its_default_settings_back(proven: None) -> None:
    cluster = FakeCluster()
    one = live(cluster, stays=True)
    one.change(GATED, RECORDING)
    one.end()
    assert cluster.done == ["replace kueue", "replace kueue", "close"]


def test_a_cluster_that_goes_is_only_stopped(proven: None) -> None:
    cluster = FakeCluster()
    one = live(cluster, stays=False)
    one.change(GATED, RECORDING)
    one.end()
    assert cluster.done == ["replace kueue", "stop"]


class FakeBackend:
    name = "kind"

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    def preflight(self, _: ClusterFolder) -> None:
        pass

    def assemble(self, *_: Any) -> FakeAssembly:
        return FakeAssembly()

    def cluster(self, *_: Any) -> FakeCluster:
        return self._cluster


def test_a_start_that_fails_leaves_its_logs_and_nothing_else(proven: None, tmp_path: Path) -> None:
    cluster = FakeCluster()
    cluster.fails = "no nodes today"
    versions, folder = load_versions(), ClusterFolder.named("dev")
    backend: Any = FakeBackend(cluster)
    with pytest.raises(ClusterError, match="no nodes today"):
        bring_up(folder, versions.default, versions, lambda _: None, backend, tmp_path / "logs")
    assert cluster.done == ["start", "export", "stop"]


@pytest.mark.parametrize("error", [subprocess.TimeoutExpired("kubectl", 30), ClusterError("no logs")])
def test_logs_that_can_not_be_kept_keep_no_cluster(error: Exception, tmp_path: Path) -> None:
    cluster: Any = FakeCluster()

    def export(folder: Path) -> None:
        folder.mkdir()
        raise error

    cluster.export_logs = export
    with pytest.raises((ClusterError, subprocess.TimeoutExpired)), ended_if_it_fails(cluster, tmp_path / "logs"):
        raise ClusterError("no nodes today")
    assert cluster.done == ["stop"]


def test_a_failure_is_told_as_it_was_and_a_folder_without_logs_goes(tmp_path: Path) -> None:
    cluster: Any = FakeCluster()
    with pytest.raises(ClusterError, match="no nodes today"), ended_if_it_fails(cluster, tmp_path / "logs"):
        raise ClusterError("no nodes today")
    assert cluster.done == ["export", "stop"]
    assert not (tmp_path / "logs").exists()


def test_whoever_interrupts_does_not_wait_for_logs(tmp_path: Path) -> None:
    cluster: Any = FakeCluster()
    with pytest.raises(KeyboardInterrupt), ended_if_it_fails(cluster, tmp_path / "logs"):
        raise KeyboardInterrupt
    assert cluster.done == ["stop"]


def test_what_goes_well_ends_nothing(tmp_path: Path) -> None:
    cluster: Any = FakeCluster()
    with ended_if_it_fails(cluster, tmp_path / "logs"):
        pass
    assert cluster.done == []


def test_a_start_says_what_it_starts_and_where(proven: None) -> None:
    versions, said = load_versions(), list[str]()
    backend: Any = FakeBackend(FakeCluster())
    one = bring_up(ClusterFolder.named("dev"), versions.default, versions, said.append, backend)
    assert said[0] == f"starting {FakeAssembly.pair} on a kind cluster"
    assert said[1].endswith("(new)")
    assert set(one.seconds) == {"binaries", "cluster", "webhook", "controllers"}
    assert not one.stays
    assert one.versions == {"ray": "2.52.0"}


def test_whoever_attaches_to_a_kind_cluster_knows_its_nodes(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    made: Any = SimpleNamespace(nodes=Nodes.of(load_versions(), load_versions().default, None))
    folder.describe({"backend": "kind", **remembered(made)})
    assert backend_of(RunOptions(), folder) == Kind(made.nodes.image)
    other: Any = FakeAssembly()
    assert remembered(other) == {}
