"""Whose end a keeper outlives, and whose not."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import psutil
import pytest

from raykueue.clusters.embedded import keeping as keeping_module
from raykueue.clusters.embedded.keeping import Keeping
from raykueue.clusters.folder import ClusterFolder
from raykueue.errors import ClusterError
from tests.clusters.keepers import start, state
from tests.clusters.processes import gone, sleeper, until

_OWNER = """
    import os, sys
    from pathlib import Path
    from raykueue.clusters.embedded.keeping import Keeping
    keeping = Keeping.launch(Path(sys.argv[1]))
    keeping.start("one", ["sleep", "300"], {"PATH": os.environ["PATH"]}, Path(sys.argv[1]))
    if sys.argv[2] == "detach":
        keeping.detach()
    print("up", flush=True)
    sys.stdin.read()
"""


def owner_that_is_killed(folder: ClusterFolder, how: str) -> tuple[psutil.Process, psutil.Process]:
    """(keeper, component) of an owner that was killed once all was up."""
    argv = [sys.executable, "-c", textwrap.dedent(_OWNER), str(folder.path), how]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        keeper = folder.keeper()
        assert keeper is not None
        component = psutil.Process(int(state(folder)["components"]["one"]["pid"]))
        owner.kill()
    return keeper, component


def test_when_the_owner_is_killed_everything_ends(folder: ClusterFolder) -> None:
    keeper, component = owner_that_is_killed(folder, "stay")
    until(lambda: gone(keeper))
    assert gone(component)
    assert not folder.alive()


def test_a_detached_cluster_outlives_its_owner_and_can_be_attached_to_and_stopped(folder: ClusterFolder) -> None:
    keeper, component = owner_that_is_killed(folder, "detach")
    assert folder.detached()
    attached = Keeping(folder.path)
    attached.check("one")
    attached.close()
    assert folder.alive()
    again = Keeping(folder.path)
    again.stop()
    assert gone(component)
    until(lambda: gone(keeper))


def test_a_terminated_keeper_ends_everything_first(folder: ClusterFolder) -> None:
    keeping = Keeping.launch(folder.path)
    process, keeper = start(keeping, "one"), folder.keeper()
    assert keeper is not None
    keeper.terminate()
    until(lambda: gone(keeper))
    assert gone(process)
    keeping.stop()


def test_a_killed_keeper_leaves_what_the_next_start_ends(folder: ClusterFolder) -> None:
    keeping = Keeping.launch(folder.path)
    one, two = start(keeping, "one"), start(keeping, "two")
    keeper = folder.keeper()
    assert keeper is not None
    keeper.kill()
    keeping.stop()
    assert not gone(one)
    assert sorted(folder.reclaim()) == ["one", "two"]
    assert gone(one)
    assert gone(two)
    assert not folder.path.exists()


def test_a_keeper_that_can_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    (folder / "keeper.sock").mkdir()
    with pytest.raises(ClusterError, match=r"the keeper of c did not start:\n(.|\n)*keeper.sock"):
        Keeping.launch(folder)
    assert not (folder / "state.json").exists()


def test_a_keeper_that_says_nothing_is_waited_for_no_longer_than_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    whole = subprocess.Popen

    def popen(argv: list[str], **about: Any) -> subprocess.Popen[bytes]:
        started.append(whole(sleeper(), **about))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(keeping_module, "START_SECONDS", 0.1)
    monkeypatch.setattr(keeping_module, "REQUEST_SECONDS", 0.1)
    with pytest.raises(ClusterError, match="did not start"):
        Keeping.launch(tmp_path)
    assert started[0].returncode == -signal.SIGKILL


def test_an_interrupt_while_the_keeper_starts_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def interrupt(process: subprocess.Popen[bytes]) -> bool:
        started.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(keeping_module, "_says_ready", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Keeping.launch(tmp_path)
    assert started[0].returncode is not None
    assert not ClusterFolder(tmp_path).alive()


def test_a_keeper_that_does_not_answer_is_no_reason_to_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping_module, "REQUEST_SECONDS", 0.1)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "keeper.sock"))
        silent.listen()
        keeping = Keeping(tmp_path)
        with pytest.raises(ClusterError, match="does not answer"):
            keeping.status()
        # Its late answer must not be taken for that of the next request.
        with pytest.raises(ClusterError, match="does not answer"):
            keeping.status()
        keeping.stop()


def test_without_a_keeper_the_message_says_how_to_clean_up(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=f"has no keeper any more .*raykueue down {tmp_path.name}"):
        Keeping(tmp_path)


def test_a_folder_may_be_deeper_than_the_address_of_a_socket_allows(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    keeping = Keeping.launch(deep)
    assert keeping.status() == {}
    keeping.stop()


def test_nothing_is_left_open_after_a_stop_and_the_keeper_complains_about_nothing(folder: ClusterFolder) -> None:
    me = psutil.Process()
    threads, files = me.num_threads(), me.num_fds()
    keeping = Keeping.launch(folder.path)
    keeping.watch(lambda _: None)
    start(keeping, "one")
    keeping.kill("one")
    keeping.stop()
    assert me.num_fds() == files
    assert me.num_threads() == threads
    assert (folder.path / "keeper.log").read_text() == ""
