from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from raykueue.clusters import folder as folder_module
from raykueue.clusters.folder import ClusterFolder, Removal, clusters, made_by, reclaim_dead, state_root
from raykueue.errors import ClusterError, ClusterLocked, UsageError
from tests.clusters.processes import gone, sleeper, until


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAYKUEUE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def component() -> Iterator[psutil.Process]:
    with subprocess.Popen(sleeper()) as process:
        yield psutil.Process(process.pid)
        process.kill()


def write_state(folder: ClusterFolder, keeper: psutil.Process | None = None, **components: dict[str, Any]) -> None:
    folder.path.mkdir(mode=0o700, exist_ok=True)
    state: dict[str, Any] = {"components": components}
    if keeper is not None:
        state["keeper"] = about(keeper)
    (folder.path / "state.json").write_text(json.dumps(state))


def about(process: psutil.Process, later: float = 0.0) -> dict[str, Any]:
    return {"pid": process.pid, "started": process.create_time() + later}


def test_the_folder_of_clusters_is_for_its_user_only(root: Path) -> None:
    assert state_root() == root / "clusters"
    assert stat.S_IMODE(state_root().stat().st_mode) == 0o700
    folder = ClusterFolder.named("dev")
    with folder.locked("a test"):
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_a_relative_state_folder_is_meant_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAYKUEUE_STATE", "here")
    assert ClusterFolder.named("dev").path == tmp_path / "here" / "clusters" / "dev"


@pytest.mark.parametrize("name", ["", "-", "../up", "a/b", "a b", "x" * 31])
def test_a_name_that_could_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="letters, digits and dashes only"):
        ClusterFolder.named(name)


def test_who_comes_second_is_told_by_whom_it_is_held() -> None:
    folder = ClusterFolder.named("dev")
    with (
        folder.locked("raykueue up"),
        pytest.raises(ClusterLocked, match=rf"cluster dev is in use by pid {os.getpid()} \(raykueue up\) since \d\d:"),
        folder.locked("another run"),
    ):
        pass
    assert folder.holder() == ""


def test_a_lock_ends_with_its_block_and_leaves_no_empty_folder() -> None:
    folder = ClusterFolder.named("dev")
    for _ in range(2):
        with folder.locked("a test"):
            assert f"pid {os.getpid()} (a test)" in folder.holder()
        assert not folder.path.exists()


_HOLDER = """
    import sys, time
    from raykueue.clusters.folder import ClusterFolder
    with ClusterFolder.named("dev").locked("a run"):
        print("held", flush=True)
        sys.stdin.read()
"""


def test_a_killed_holder_holds_nothing() -> None:
    argv = [sys.executable, "-c", textwrap.dedent(_HOLDER)]
    folder = ClusterFolder.named("dev")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(ClusterLocked, match=f"pid {other.pid}"), folder.locked("a test"):
            pass
        other.kill()
    assert folder.holder() == ""
    with folder.locked("a test"):
        pass


def test_exactly_the_recorded_processes_are_ended(component: psutil.Process) -> None:
    folder = ClusterFolder.named("dev")
    write_state(folder, one=about(component))
    (folder.path / "etcd").mkdir()
    assert folder.reclaim() == ["one"]
    assert gone(component)
    assert not folder.path.exists()


def test_a_reused_pid_is_never_touched(component: psutil.Process) -> None:
    folder = ClusterFolder.named("dev")
    write_state(folder, one=about(component, later=-3600))
    assert folder.reclaim() == []
    assert not gone(component)


@pytest.mark.parametrize("text", ["", "{", "{}"])
def test_a_state_that_can_not_be_read_names_nobody(text: str) -> None:
    folder = ClusterFolder.named("dev")
    folder.path.mkdir()
    (folder.path / "state.json").write_text(text)
    assert not folder.alive()
    assert folder.reclaim() == []
    assert not folder.path.exists()


def test_a_cluster_whose_keeper_runs_is_not_reclaimed(component: psutil.Process) -> None:
    folder = ClusterFolder.named("dev")
    write_state(folder, keeper=component)
    assert folder.alive()
    with pytest.raises(ClusterError, match="cluster dev is running; `raykueue down dev` ends it"):
        folder.reclaim()
    assert reclaim_dead() == {}
    assert not gone(component)


def test_a_keeper_that_ended_but_was_not_waited_for_is_dead() -> None:
    folder = ClusterFolder.named("dev")
    with subprocess.Popen(sleeper()) as process:
        keeper = psutil.Process(process.pid)
        write_state(folder, keeper=keeper)
        assert folder.alive()
        process.kill()
        until(lambda: keeper.status() == psutil.STATUS_ZOMBIE)
        assert not folder.alive()


def test_who_starts_again_in_the_same_folder_keeps_the_lock_that_others_see() -> None:
    folder = ClusterFolder.named("dev")
    with folder.locked("a run"):
        write_state(folder)
        folder.reclaim()
        assert "(a run)" in folder.holder()
        with pytest.raises(ClusterLocked), folder.locked("somebody else"):
            pass
        write_state(folder)
    folder.reclaim()


def test_only_dead_clusters_are_cleaned_up(component: psutil.Process, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, held, running, beginning = (ClusterFolder.named(name) for name in ("dead", "held", "running", "beginning"))
    write_state(dead, one=about(component))
    write_state(running, keeper=psutil.Process())
    beginning.path.mkdir()
    with held.locked("a run"):
        write_state(held)
        assert reclaim_dead() == {"dead": ["one"]}
        assert held.path.exists()
    assert {folder.name for folder in clusters()} == {"held", "running", "beginning"}


def test_a_run_that_died_before_it_started_anything_is_cleaned_up_once_it_is_old() -> None:
    folder = ClusterFolder.named("early")
    folder.path.mkdir()
    long_ago = time.time() - folder_module._BEGIN_SECONDS - 1
    os.utime(folder.path, (long_ago, long_ago))
    assert reclaim_dead() == {"early": []}
    assert clusters() == []


def test_what_a_keeper_left_that_ended_by_itself_is_removed_at_once() -> None:
    folder = ClusterFolder.named("ended")
    folder.path.mkdir()
    (folder.path / "etcd.log").write_text("the end")
    assert reclaim_dead() == {"ended": []}
    assert not folder.path.exists()


def test_what_is_described_is_read_again() -> None:
    folder = ClusterFolder.named("dev")
    assert folder.about == {}
    folder.path.mkdir()
    folder.describe({"ports": {"etcd": 12345}})
    assert folder.about == {"ports": {"etcd": 12345}}
    assert [path.name for path in folder.path.iterdir()] == ["cluster.json"]


def command(script: str, gone: Sequence[str] = (), mark: str = "") -> Removal:
    return Removal([sys.executable, "-c", script], dict(os.environ), gone, mark)


def without_processes(name: str, *removals: Removal, detached: bool = False) -> ClusterFolder:
    folder = ClusterFolder.named(name)
    folder.path.mkdir(mode=0o700, exist_ok=True)
    folder.record(removals, detached=detached)
    return folder


def test_what_is_no_process_is_ended_by_the_recorded_command(tmp_path: Path) -> None:
    folder = without_processes("dev", command(f"open({str(tmp_path / 'ended')!r}, 'w')"))
    assert not folder.alive()
    assert reclaim_dead() == {"dev": ["its nodes"]}
    assert (tmp_path / "ended").exists()
    assert not folder.path.exists()


def test_what_is_no_process_is_alive_while_somebody_has_it_or_when_it_was_left_up() -> None:
    held = without_processes("held", command("raise SystemExit(1)"))
    without_processes("kept", command("raise SystemExit(1)"), detached=True)
    with held.locked("a run"):
        assert held.alive()
        assert reclaim_dead() == {}
    assert {folder.name for folder in clusters()} == {"held", "kept"}


def test_a_removal_that_fails_leaves_the_folder_and_holds_nobody_else_up() -> None:
    failing = without_processes("a", command("raise SystemExit('Cannot connect to the Docker daemon')"))
    without_processes("b", command(""))
    told: list[str] = []
    assert reclaim_dead(told.append) == {"b": ["its nodes"]}
    assert len(told) == 1
    assert "cluster a can't be removed: " in told[0]
    assert told[0].endswith("ended with code 1: Cannot connect to the Docker daemon")
    assert failing.removals()
    failing.record([command("")])
    assert reclaim_dead() == {"a": ["its nodes"]}


def test_a_removal_may_find_nothing() -> None:
    without_processes("dev", command("raise SystemExit('network dev not found')", gone=["not there", "not found"]))
    assert reclaim_dead() == {"dev": ["its nodes"]}


def test_what_a_killed_run_left_at_work_is_ended_before_what_it_made_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "_IN_FLIGHT_SECONDS", 0.0)
    at_work = [sys.executable, "-c", "import time; time.sleep(600)"]
    ours, others = (
        subprocess.Popen(at_work, env={**os.environ, "RAYKUEUE_TEST_MARK": value}) for value in ("dev", "dev-2")
    )
    try:
        ended = f"import psutil; open({str(tmp_path / 'seen')!r}, 'a').write(psutil.Process({ours.pid}).status() + ' ')"
        without_processes("dev", command(ended, mark="RAYKUEUE_TEST_MARK=dev"))
        assert reclaim_dead() == {"dev": ["its nodes"]}
        # Twice: what it had asked for may have been made after the first look.
        assert (tmp_path / "seen").read_text().split() == [psutil.STATUS_ZOMBIE] * 2
        assert others.poll() is None
    finally:
        for process in (ours, others):
            process.kill()
            process.wait()


def test_who_made_a_cluster_is_written_in_it() -> None:
    folder = ClusterFolder.named("dev")
    assert made_by(folder) == "embedded"
    folder.path.mkdir()
    folder.describe({"backend": "kind"})
    assert made_by(folder) == "kind"
