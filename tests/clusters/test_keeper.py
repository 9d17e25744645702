"""The keeper for real, with processes that do no harm."""

from __future__ import annotations

import os
import queue
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from raykueue.clusters.embedded import keeping as keeping_module
from raykueue.clusters.embedded.keeping import Keeping
from raykueue.clusters.folder import ClusterFolder
from raykueue.errors import ClusterError, ComponentDied
from tests.clusters.keepers import ENV, start, start_dying, state
from tests.clusters.processes import gone, sleeper, until


def death_of(name: str, told: queue.Queue[ComponentDied]) -> str:
    """What is told of the death of one component; a watch is told earlier ones, too."""
    while True:
        text = str(told.get(timeout=10))
        if text.startswith(f"{name} of cluster c "):
            return text


def test_a_started_component_runs_and_the_state_names_it_with_its_start_time(keeping: Keeping) -> None:
    folder = ClusterFolder(keeping.folder)
    process = start(keeping, "one")
    assert keeping.status()["one"] == {"pid": process.pid, "alive": True, "code": None}
    assert state(folder)["components"] == {"one": {"pid": process.pid, "started": process.create_time()}}
    keeping.check("one")
    assert folder.alive()


def test_a_component_is_a_session_of_its_own_so_a_ctrl_c_does_not_reach_it(keeping: Keeping) -> None:
    process = start(keeping, "one")
    assert os.getsid(process.pid) == process.pid


def test_only_the_owner_can_reach_the_keeper(keeping: Keeping) -> None:
    assert stat.S_IMODE((keeping.folder / "keeper.sock").stat().st_mode) == 0o600


def test_a_component_that_can_not_be_started_is_named_with_the_reason(keeping: Keeping) -> None:
    with pytest.raises(ClusterError, match=r"cluster c: absent: .*No such file.*nowhere"):
        keeping.start("absent", ["/nowhere/at/all"], ENV, keeping.folder)
    assert "absent" not in keeping.status()


def test_an_environment_may_be_as_large_as_linux_allows(keeping: Keeping) -> None:
    large = {f"V{number}": "x" * 100_000 for number in range(3)}
    keeping.start("one", sleeper(), ENV | large, keeping.folder)
    keeping.check("one")


def test_a_running_component_is_not_started_a_second_time(keeping: Keeping) -> None:
    process = start(keeping, "one")
    with pytest.raises(ClusterError, match=f"one: it runs already, as pid {process.pid}"):
        start(keeping, "one")
    keeping.kill("one")
    assert gone(process)


def test_what_was_never_started_can_not_be_ended(keeping: Keeping) -> None:
    start(keeping, "one")
    with pytest.raises(ClusterError, match=r"nobody: it was never started; there are: .*one"):
        keeping.kill("nobody")


def test_a_death_is_told_at_once_with_the_end_of_the_log(keeping: Keeping) -> None:
    told: queue.Queue[ComponentDied] = queue.Queue()
    keeping.watch(told.put)
    start_dying(keeping, "speaks", "the last words", 3)
    error = death_of("speaks", told)
    assert "speaks of cluster c ended by itself (exit code 3)" in error
    assert "    the last words" in error
    with pytest.raises(ComponentDied, match="the last words"):
        keeping.check("speaks")


def test_a_death_before_the_watch_is_told_too(keeping: Keeping) -> None:
    start_dying(keeping, "early", "", 4)
    until(lambda: not keeping.status()["early"]["alive"])
    told: queue.Queue[ComponentDied] = queue.Queue()
    keeping.watch(told.put)
    assert "exit code 4" in death_of("early", told)


def test_a_watch_outlives_the_deadline_of_a_request(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(keeping_module, "REQUEST_SECONDS", 0.05)
        told: queue.Queue[ComponentDied] = queue.Queue()
        keeping.watch(told.put)
    silent_since = time.monotonic()
    until(lambda: time.monotonic() - silent_since > 0.2)
    start_dying(keeping, "later", "", 5)
    assert "exit code 5" in death_of("later", told)


def test_a_death_by_a_signal_is_told_as_that(keeping: Keeping) -> None:
    told: queue.Queue[ComponentDied] = queue.Queue()
    keeping.watch(told.put)
    start(keeping, "shot").kill()
    assert "(signal 9)" in death_of("shot", told)


def test_who_is_ended_on_purpose_is_not_told(keeping: Keeping) -> None:
    told: queue.Queue[ComponentDied] = queue.Queue()
    keeping.watch(told.put)
    process = start(keeping, "one")
    keeping.kill("one")
    assert gone(process)
    assert keeping.status()["one"] == {"pid": process.pid, "alive": False, "code": -signal.SIGKILL}
    start_dying(keeping, "marker", "", 0)
    seen: list[str] = []
    while not seen or not seen[-1].startswith("marker"):
        seen.append(str(told.get(timeout=10)))
    assert not any(text.startswith("one ") for text in seen)


def test_a_component_that_was_ended_can_be_started_again_and_its_next_death_is_told(keeping: Keeping) -> None:
    told: queue.Queue[ComponentDied] = queue.Queue()
    keeping.watch(told.put)
    first = start(keeping, "one")
    keeping.kill("one")
    second = start(keeping, "one")
    assert second.pid != first.pid
    keeping.check("one")
    second.kill()
    assert "(signal 9)" in death_of("one", told)


def test_the_end_of_the_keeper_itself_is_told(folder: ClusterFolder) -> None:
    keeping = Keeping.launch(folder.path)
    told: queue.Queue[ComponentDied] = queue.Queue()
    keeping.watch(told.put)
    keeper = folder.keeper()
    assert keeper is not None
    keeper.kill()
    assert "the keeper of cluster c ended by itself" in str(told.get(timeout=10))
    with pytest.raises(ClusterError, match="the keeper of c"):
        keeping.status()
    keeping.stop()


def test_stopping_ends_clients_before_etcd_and_the_keeper_last(folder: ClusterFolder) -> None:
    order = folder.path / "order"
    witness = f"""
        import pathlib, signal, sys, time
        def end(*_):
            path = pathlib.Path(f"/proc/{{sys.argv[1]}}/cmdline")
            alive = path.exists() and path.read_bytes()  # that of a zombie is empty
            pathlib.Path({str(order)!r}).write_text("client alive" if alive else "client gone")
            sys.exit(0)
        signal.signal(signal.SIGTERM, end)
        pathlib.Path({str(order)!r}).write_text("")
        time.sleep(300)
    """
    keeping = Keeping.launch(folder.path)
    client = start(keeping, "client")
    # As if it had been started again: the youngest, and still the last to end.
    etcd = start(keeping, "etcd", [sys.executable, "-c", textwrap.dedent(witness), str(client.pid)])
    until(order.exists)
    keeper = folder.keeper()
    assert keeper is not None
    keeping.stop()
    assert order.read_text() == "client gone"
    assert gone(client)
    assert gone(etcd)
    assert gone(keeper)
    assert not (folder.path / "state.json").exists()
    assert not (folder.path / "keeper.sock").exists()


def test_a_component_that_does_not_want_to_end_is_ended_by_force(
    folder: ClusterFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = folder.path / "ready"
    deaf = f"import pathlib, signal, time; signal.signal(15, signal.SIG_IGN); pathlib.Path({str(ready)!r}).touch(); "
    keeping = launch_impatient(folder.path, monkeypatch)
    process = start(keeping, "etcd", [sys.executable, "-c", deaf + "time.sleep(300)"])
    until(ready.exists)
    keeping.stop()
    assert gone(process)


def launch_impatient(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Keeping:
    """A keeper that waits for a tenth of a second only."""
    program = (
        "import asyncio, pathlib, sys; from raykueue.clusters.embedded import keeper; keeper.STOP_SECONDS = 0.1; "
        "asyncio.run(keeper.Keeper(pathlib.Path(sys.argv[1])).run())"
    )
    whole = subprocess.Popen

    def popen(argv: list[str], **about: Any) -> subprocess.Popen[bytes]:
        return whole([argv[0], "-c", program, argv[-1]], **about)

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", popen)
        return Keeping.launch(folder)


def test_stopping_twice_does_nothing_the_second_time(folder: ClusterFolder) -> None:
    keeping = Keeping.launch(folder.path)
    keeping.stop()
    keeping.stop()
    with pytest.raises(ClusterError, match="the keeper of c does not answer"):
        keeping.status()
