"""An embedded cluster whose control plane is a process that sleeps: start, failure, interrupt, stop."""

from __future__ import annotations

import contextlib
import json
import queue
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import psutil
import pytest

from raykueue.clusters import graph
from raykueue.clusters.embedded import kwok
from raykueue.clusters.embedded.bootstrap import Bootstrap
from raykueue.clusters.embedded.cluster import EmbeddedCluster
from raykueue.clusters.folder import ClusterFolder
from raykueue.clusters.graph import Step
from raykueue.clusters.protocol import ComponentSpec, Process
from raykueue.errors import ClusterError, ComponentDied
from tests.clusters.processes import ends_with, gone, sleeper, until

PART = ComponentSpec("part", None, lambda _: Process(sleeper()))
Steps = Callable[[Bootstrap], dict[str, Step]]


class Plan:
    """What a start does, instead of the real thing; a test may put in steps of its own."""

    def __init__(self) -> None:
        self.more: Steps = lambda _: {}
        self.starts: list[str] = []
        self.processes: list[psutil.Process] = []

    def run(self, bootstrap: Bootstrap, name: str, argv: list[str]) -> None:
        pid = bootstrap._keeping.start(name, argv, {"PATH": "/usr/bin:/bin"}, bootstrap._plane.folder)
        with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended already
            self.processes.append(psutil.Process(pid))

    def steps(self, bootstrap: Bootstrap, how: str) -> dict[str, Step]:
        self.starts.append(how)

        def etcd() -> None:
            folder = bootstrap._plane.folder
            for name in ("etcd", "pki"):
                (folder / name).mkdir(exist_ok=True)
            bootstrap._plane.ports("etcd")
            bootstrap._components.service_port("kueue-system", "webhook")
            self.run(bootstrap, "etcd", sleeper())
            for name in bootstrap._components.specs:
                bootstrap._components.folder_of(name).mkdir(exist_ok=True)
                bootstrap._components.start(name)

        return {"etcd": Step(etcd), **self.more(bootstrap)}


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    plan = Plan()
    monkeypatch.setattr(Bootstrap, "cold", lambda bootstrap, _crds: plan.steps(bootstrap, "cold"))
    monkeypatch.setattr(Bootstrap, "from_saved", lambda bootstrap, _state: plan.steps(bootstrap, "saved"))
    monkeypatch.setattr(kwok, "stages", lambda _: "")
    return plan


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterFolder:
    monkeypatch.setenv("RAYKUEUE_STATE", str(tmp_path / "state"))
    return ClusterFolder.named("c")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def cluster(folder: ClusterFolder, plan: Plan, tmp_path: Path, said: list[str]) -> Iterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(folder, {}, tmp_path, tmp_path / "cache", said.append)
    yield cluster
    cluster.stop()


def nothing_is_left(folder: ClusterFolder, plan: Plan) -> bool:
    return all(gone(process) for process in plan.processes) and not folder.path.exists()


def test_a_started_cluster_is_described_for_whoever_attaches(
    cluster: EmbeddedCluster, folder: ClusterFolder, plan: Plan
) -> None:
    cluster.about = {"pair": {"kueue": "0.19.2"}}
    cluster.start([], [PART])
    assert folder.alive()
    about = folder.about
    assert about["pair"] == {"kueue": "0.19.2"}
    assert about["kubeconfig"] == str(folder.path / "kubeconfig")
    assert about["ports"].keys() >= {"etcd", "service kueue-system/webhook"}
    assert [timing.name for timing in cluster.timings] == ["etcd"]
    cluster.stop()
    assert nothing_is_left(folder, plan)


def test_what_runs_in_it_is_told_by_its_processes_and_all_that_they_logged(
    cluster: EmbeddedCluster, folder: ClusterFolder
) -> None:
    cluster.start([], [PART])
    programs = cluster.programs()
    assert set(programs) == {"etcd", "part"}
    assert all(path.exists() for path in programs.values())
    assert (cluster.containers(), cluster.kubelets()) == ({}, {})
    (folder.path / "kueue.log").write_bytes(b"first\nno text: \xff\n")
    assert list(cluster.first_words("kueue")) == ["first\n", "no text: \ufffd\n"]
    assert list(cluster.first_words("nosuch")) == []


def test_the_second_start_is_from_what_the_first_one_saved(
    cluster: EmbeddedCluster, plan: Plan, tmp_path: Path
) -> None:
    cluster.start([], [PART])
    first = cluster.from_saved
    cluster.stop()
    (saved,) = (tmp_path / "cache" / "state").iterdir()
    assert json.loads((saved / "ports.json").read_text()).keys() == {"kueue-system/webhook"}
    cluster.start([], [PART])
    assert (first, cluster.from_saved) == (False, True)
    cluster.stop()
    cluster.start([{"kind": "CustomResourceDefinition"}], [PART])
    assert plan.starts == ["cold", "saved", "cold"]


def test_a_step_that_fails_leaves_no_process_and_no_folder(
    cluster: EmbeddedCluster, folder: ClusterFolder, plan: Plan
) -> None:
    def fail() -> None:
        raise ClusterError("no CRD is served")

    plan.more = lambda _: {"crds": Step(fail, ["etcd"])}
    with pytest.raises(ClusterError, match="no CRD is served"):
        cluster.start([], [PART])
    assert plan.processes
    assert nothing_is_left(folder, plan)
    assert plan.starts == ["cold"]


def test_a_failure_ends_the_waiting_of_the_others(cluster: EmbeddedCluster, folder: ClusterFolder, plan: Plan) -> None:
    def steps(bootstrap: Bootstrap) -> dict[str, Step]:
        def fail() -> None:
            raise ClusterError("kueue died")

        # Would wait for a minute, if the keeper did not go away under it.
        return {
            "kwok": Step(lambda: bootstrap._until("etcd", lambda: False), ["etcd"]),
            "kueue": Step(fail, ["etcd"]),
        }

    plan.more = steps
    with pytest.raises(ClusterError, match="kueue died"):
        cluster.start([], [PART])
    assert nothing_is_left(folder, plan)


def test_an_interrupt_leaves_no_process_and_no_folder(
    cluster: EmbeddedCluster, folder: ClusterFolder, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        wait(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(graph, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cluster.start([], [PART])
    assert plan.processes
    assert nothing_is_left(folder, plan)


def test_a_saved_state_that_nothing_starts_from_is_dropped_once(
    cluster: EmbeddedCluster, plan: Plan, said: list[str]
) -> None:
    cluster.start([], [PART])
    cluster.stop()

    def steps(bootstrap: Bootstrap) -> dict[str, Step]:
        def damaged() -> None:
            if plan.starts[-1] == "saved":
                raise ClusterError("etcd: database is damaged")

        return {"damaged": Step(damaged, ["etcd"])}

    plan.more = steps
    cluster.start([], [PART])
    assert plan.starts == ["cold", "saved", "cold"]
    assert said == ["can't start from the saved state, starting cold: etcd: database is damaged"]


def takes_no_port(plan: Plan, times: int) -> Steps:
    left = [times]

    def steps(bootstrap: Bootstrap) -> dict[str, Step]:
        def api() -> None:
            left[0] -= 1
            taken = left[0] >= 0
            plan.run(bootstrap, "kube-apiserver", ends_with("bind: address already in use", 1) if taken else sleeper())
            if taken:
                until(lambda: not bootstrap._keeping.status()["kube-apiserver"]["alive"])
            bootstrap._keeping.check("kube-apiserver")

        return {"api": Step(api, ["etcd"])}

    return steps


def test_a_port_that_somebody_took_is_tried_again_under_the_same_lock(
    cluster: EmbeddedCluster, folder: ClusterFolder, plan: Plan, said: list[str]
) -> None:
    plan.more = takes_no_port(plan, 1)
    with folder.locked("a run"):
        cluster.start([], [PART])
        assert said == ["a port was taken by somebody else; starting again (1 of 2)"]
        assert "(a run)" in folder.holder()
        cluster.stop()
    assert nothing_is_left(folder, plan)


def test_a_port_is_not_tried_for_ever(cluster: EmbeddedCluster, folder: ClusterFolder, plan: Plan) -> None:
    plan.more = takes_no_port(plan, 9)
    with pytest.raises(ComponentDied, match="address already in use"):
        cluster.start([], [PART])
    assert len(plan.starts) == 3
    assert nothing_is_left(folder, plan)


def test_a_component_can_be_ended_and_started_again_and_nobody_is_told(cluster: EmbeddedCluster) -> None:
    cluster.start([], [PART])
    told: queue.Queue[ComponentDied] = queue.Queue()
    cluster.watch(told.put)
    cluster.kill("part")
    cluster.start_component("part")
    cluster.replace(ComponentSpec("part", None, lambda _: Process(ends_with("other settings", 7))))
    # The first that is told is the one that ended by itself.
    assert "exit code 7" in str(told.get(timeout=10))
    assert "other settings" in cluster.logs("part")


def test_a_detached_cluster_is_attached_to_and_let_go_of(
    cluster: EmbeddedCluster, folder: ClusterFolder, tmp_path: Path
) -> None:
    cluster.start([], [PART])
    cluster.detach()
    assert folder.detached()
    other = EmbeddedCluster(folder, {}, tmp_path, tmp_path / "cache")
    other.attach([PART])
    other.replace(PART)
    assert other.socket_folder("part") == folder.path / "part"
    other.close()
    other.close()
    assert folder.alive()


def test_a_cluster_that_does_not_run_says_so(cluster: EmbeddedCluster) -> None:
    with pytest.raises(ClusterError, match="cluster c is not running"):
        cluster.kill("part")
    assert cluster.logs("part") == "    (no log)"


def test_a_keeper_that_was_killed_leaves_nothing_that_stop_does_not_end(
    cluster: EmbeddedCluster, folder: ClusterFolder, plan: Plan
) -> None:
    cluster.start([], [PART])
    keeper = folder.keeper()
    assert keeper is not None
    keeper.kill()
    cluster.stop()
    assert nothing_is_left(folder, plan)
