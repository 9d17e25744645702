from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from raykueue.cli import main
from raykueue.clusters.embedded.keeping import Keeping
from raykueue.clusters.folder import ClusterFolder
from raykueue.errors import EXIT_INFRA, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, ClusterError, ComponentDied
from raykueue.model.versions import Pair
from raykueue.run import command
from raykueue.run.leftovers import runs_root
from raykueue.toolchain.lock import load_versions

SLEEP = ["sleep", "600"]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state directory of this test's own; nothing runs in it afterwards."""
    monkeypatch.setenv("RAYKUEUE_STATE", str(tmp_path / "state"))
    yield tmp_path / "state"
    main(["down", "--all", "--force"])
    while _KEPT:
        _KEPT.pop().stop()


def keep(name: str = "default", *, pair: Pair | None = None, detached: bool = True) -> ClusterFolder:
    """A cluster as `up` leaves it, with one component that only sleeps."""
    folder = ClusterFolder.named(name)
    folder.path.mkdir(mode=0o700)
    keeping = Keeping.launch(folder.path)
    keeping.start("one", SLEEP, dict(os.environ), folder.path)
    about = {"pair": (pair or load_versions().default).versions(), "started": time.time()}
    folder.describe({**about, "kubeconfig": str(folder.path / "kubeconfig")})
    if detached:
        keeping.detach()
    _KEPT.append(keeping)
    return folder


_KEPT: list[Keeping] = []
"""Keepers that this process launched: each ends with its pipe to us, unless it is detached."""


def processes(folder: ClusterFolder) -> list[psutil.Process]:
    state = json.loads((folder.path / "state.json").read_text())
    return [psutil.Process(about["pid"]) for about in (state["keeper"], *state["components"].values())]


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


class FakeCluster:
    """What `bring_up` returns, as far as `up` looks at it."""

    def __init__(self, folder: ClusterFolder, detach: BaseException | None = None) -> None:
        self.cluster = self
        self.seconds = {"cluster": 2.5, "webhook": 0.25}
        self.stopped = False
        self.checked = False
        self._folder = folder
        self._detach = detach

    def check(self) -> None:
        self.checked = True

    def detach(self) -> None:
        assert self.checked, "a cluster is left up that may have lost a component"
        if self._detach is not None:
            raise self._detach
        self._folder.path.rename(self._folder.path.with_name("aside"))
        keep(self._folder.name)

    def export_logs(self, folder: Path) -> None:
        assert not self.stopped, "what is gone says nothing any more"
        folder.mkdir()
        (folder / "kubectl.txt").write_text("what kubectl shows\n")

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        pass


def test_up_says_how_to_use_what_it_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[str, Pair]] = []

    def bring_up(folder: ClusterFolder, pair: Pair, *_: object) -> FakeCluster:
        asked.append((folder.name, pair))
        return FakeCluster(folder)

    monkeypatch.setattr(command, "bring_up", bring_up)
    assert main(["up"]) == EXIT_OK
    assert asked == [("default", load_versions().default)]
    text = capsys.readouterr().out
    assert "cluster default is up: Kueue 0.19.2, KubeRay 1.6.2, Kubernetes 1.34.4" in text
    assert "cluster 2.5 s, webhook 0.2 s" in text
    assert f"export KUBECONFIG={ClusterFolder.named('default').path / 'kubeconfig'}" in text
    assert "pytest --reuse-cluster " in text
    assert "raykueue down " in text


def test_up_again_with_the_same_pair_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(command, "bring_up")
    keep("mine")
    assert main(["up", "mine", "--kueue", "v0.19.2"]) == EXIT_OK
    text = capsys.readouterr().out
    assert "cluster mine was up already" in text
    assert "pytest --reuse-cluster=mine " in text
    assert "raykueue down mine " in text


def test_up_can_print_the_path_of_the_kubeconfig_alone(capsys: pytest.CaptureFixture[str]) -> None:
    folder = keep()
    assert main(["up", "--kubeconfig"]) == EXIT_OK
    assert capsys.readouterr().out == f"{folder.path / 'kubeconfig'}\n"


def test_up_with_another_pair_is_refused_and_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    keep()
    assert main(["up", "--kueue", "0.16.2"]) == EXIT_USAGE
    message = capsys.readouterr().err
    assert "is up with Kueue 0.19.2" in message
    assert "Kueue 0.16.2, KubeRay 1.6.2, Kubernetes 1.34.4 was asked for" in message
    assert "`raykueue down default` first" in message


def test_up_does_not_take_over_the_cluster_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    folder = keep(detached=False)
    with folder.locked("pytest, run r1"):
        assert main(["up"]) == EXIT_INFRA
    assert f"belongs to a run: pid {os.getpid()} (pytest, run r1)" in capsys.readouterr().err


def test_up_does_not_call_a_cluster_up_that_lost_a_component(capsys: pytest.CaptureFixture[str]) -> None:
    folder = keep()
    _, component = processes(folder)
    component.kill()
    until_ended(folder)
    assert main(["up"]) == EXIT_INFRA
    assert "not whole: 0/1 (one ended)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"), [(ClusterError("no room"), EXIT_INFRA), (KeyboardInterrupt(), EXIT_INTERRUPTED)]
)
def test_an_up_that_fails_leaves_no_folder(error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def bring_up(*_: object) -> FakeCluster:
        raise error

    monkeypatch.setattr(command, "bring_up", bring_up)
    assert main(["up"]) == code
    assert not ClusterFolder.named("default").path.exists()


def test_an_up_that_can_not_leave_its_cluster_up_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started = FakeCluster(ClusterFolder.named("default"), detach=KeyboardInterrupt())
    monkeypatch.setattr(command, "bring_up", lambda *_: started)
    assert main(["up"]) == EXIT_INTERRUPTED
    assert started.stopped


def test_an_up_that_fails_keeps_what_was_said_where_its_error_says_until_the_next_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    says_more = [True]

    def bring_up(folder: ClusterFolder, *more: object) -> FakeCluster:
        *_, evidence = more
        assert isinstance(evidence, Path)
        assert not evidence.exists(), "it would be taken for this start's"
        if says_more:
            FakeCluster(folder).export_logs(evidence)
        raise ComponentDied("kueue does not start\nlast line of its log")

    monkeypatch.setattr(command, "bring_up", bring_up)
    assert main(["up", "mine", "--cluster", "kind"]) == EXIT_INFRA
    told = capsys.readouterr().err
    kept = state / "failed" / "mine"
    assert told == (
        f"raykueue: kueue does not start\nlast line of its log\nwhat its components said is kept in {kept}\n"
    )
    assert [path.name for path in kept.iterdir()] == ["kubectl.txt"]
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert main(["status"]) == EXIT_OK
    assert kept.exists()
    capsys.readouterr()
    says_more.clear()
    assert main(["up", "mine", "--cluster", "kind"]) == EXIT_INFRA
    assert capsys.readouterr().err == "raykueue: kueue does not start\nlast line of its log\n"
    assert not kept.exists()


def test_a_cluster_that_lost_a_component_before_it_was_left_up_is_told_with_its_logs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: Path
) -> None:
    started = FakeCluster(ClusterFolder.named("default"), detach=ComponentDied("kueue ended"))
    monkeypatch.setattr(command, "bring_up", lambda *_: started)
    assert main(["up"]) == EXIT_INFRA
    assert started.stopped
    assert capsys.readouterr().err.endswith(
        f"kueue ended\nwhat its components said is kept in {state}/failed/default\n"
    )


def test_down_ends_every_process_and_removes_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    folder = keep()
    running = processes(folder)
    assert main(["down"]) == EXIT_OK
    assert all(gone(process) for process in running)
    assert not folder.path.exists()
    assert capsys.readouterr().out == "cluster default is ended\n"


def test_down_of_what_is_not_up_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["down"]) == EXIT_OK
    assert main(["down", "--all"]) == EXIT_OK
    assert capsys.readouterr().out == "no cluster default is up: nothing to do\nno cluster is up: nothing to do\n"


def test_down_ends_what_a_dead_keeper_left() -> None:
    folder = keep()
    keeper, component = processes(folder)
    keeper.kill()
    keeper.wait(10)
    assert not gone(component)
    assert main(["down"]) == EXIT_OK
    assert gone(component)
    assert not folder.path.exists()


def test_down_ends_a_keeper_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raykueue.clusters.embedded.keeping.REQUEST_SECONDS", 0.2)
    monkeypatch.setattr("raykueue.run.ending.REQUEST_SECONDS", 0.2)
    folder = keep()
    keeper, component = processes(folder)
    keeper.suspend()
    assert main(["down"]) == EXIT_OK
    assert gone(keeper)
    assert gone(component)


def test_down_refuses_while_a_run_uses_the_cluster_and_says_who(capsys: pytest.CaptureFixture[str]) -> None:
    folder = keep()
    with folder.locked("pytest, run r1"):
        assert main(["down"]) == EXIT_INFRA
        assert f"in use by pid {os.getpid()} (pytest, run r1)" in capsys.readouterr().err
        assert folder.alive()
        assert main(["down", "--force"]) == EXIT_OK
        assert not folder.alive()


def test_down_all_ends_what_nobody_uses(capsys: pytest.CaptureFixture[str]) -> None:
    used, free = keep("used"), keep("free")
    with used.locked("pytest, run r1"):
        assert main(["down", "--all"]) == EXIT_INFRA
        assert used.alive()
        assert not free.alive()
    assert main(["down", "--all"]) == EXIT_OK
    assert not used.alive()
    assert "cluster used is ended" in capsys.readouterr().out


def test_status_shows_pair_user_and_processes(capsys: pytest.CaptureFixture[str]) -> None:
    folder = keep()
    with keep("second").locked("pytest, run r1"):
        assert main(["status"]) == EXIT_OK
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["NAME", "PAIR", "UP", "SINCE", "IN", "USE", "BY", "PROCESSES", "KUBECONFIG"]
    assert "Kueue 0.19.2, KubeRay 1.6.2, Kubernetes 1.34.4" in rows[0]
    assert rows[0].split()[-3:] == ["nobody", "1/1", str(folder.path / "kubeconfig")]
    assert f"pid {os.getpid()} (pytest, run r1) since" in rows[1]


def test_status_names_components_that_ended(capsys: pytest.CaptureFixture[str]) -> None:
    folder = keep()
    processes(folder)[1].kill()
    until_ended(folder)
    assert main(["status"]) == EXIT_OK
    assert "0/1 (one ended)" in capsys.readouterr().out


def test_status_shows_a_cluster_that_is_being_started(capsys: pytest.CaptureFixture[str]) -> None:
    folder = keep(detached=False)
    (folder.path / "cluster.json").unlink()
    assert main(["status"]) == EXIT_OK
    assert "(being started)" in capsys.readouterr().out


def test_status_cleans_up_after_a_cluster_whose_keeper_died(capsys: pytest.CaptureFixture[str]) -> None:
    folder = keep("run-1")
    keeper, component = processes(folder)
    keeper.kill()
    keeper.wait(10)
    assert main(["status"]) == EXIT_OK
    text = capsys.readouterr().out
    assert "cleaned up after cluster run-1, whose owner is gone: ended one" in text
    assert "no cluster is up" in text
    assert gone(component)
    assert not folder.path.exists()


def test_status_removes_the_folder_of_a_dead_run_and_no_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs_root().mkdir(parents=True)
    dead, alive, new = (runs_root() / name for name in ("run-dead", "run-alive", "run-new"))
    for folder in (dead, alive, new):
        folder.mkdir()
    monkeypatch.chdir(runs_root())  # a socket's address is short, and a temporary folder may be deep
    with socket.socket(socket.AF_UNIX) as left:
        left.bind("run-dead/owner.sock")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("run-alive/owner.sock")
        listening.listen()
        os.utime(dead, (0, time.time() - 60))
        assert main(["status"]) == EXIT_OK
    assert "cleaned up after run-dead, whose owner is gone" in capsys.readouterr().out
    assert [path.name for path in sorted(runs_root().iterdir())] == ["run-alive", "run-new"]


def test_logs_prints_the_last_lines_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    folder = keep()
    (folder.path / "kueue.log").write_text("first\n  second\nthird\n")
    assert main(["logs", "kueue", "-n", "2"]) == EXIT_OK
    assert capsys.readouterr().out == "  second\nthird\n"


def test_logs_of_an_unknown_component_lists_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    keep()
    assert main(["logs", "kueeu"]) == EXIT_USAGE
    assert "no log of 'kueeu'; it has keeper, one" in capsys.readouterr().err


def test_logs_of_an_unknown_cluster_says_how_to_find_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "kueue", "nosuch"]) == EXIT_USAGE
    assert "there is no cluster nosuch; `raykueue status`" in capsys.readouterr().err


def until_ended(folder: ClusterFolder) -> None:
    """Returns once the keeper knows that its component has ended."""
    while _KEPT[-1].status()["one"]["alive"]:
        pass
