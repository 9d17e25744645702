from __future__ import annotations

import os
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from raykueue.clusters.embedded.saved import USABLE_DAYS, SavedState
from raykueue.errors import ClusterError
from tests.clusters.processes import sleeper, until

PORTS = {"kueue-system/kueue-webhook-service": 12345}


@pytest.fixture
def etcd() -> Iterator[psutil.Process]:
    with running() as process:
        yield process


@contextmanager
def running() -> Iterator[psutil.Process]:
    with subprocess.Popen(sleeper()) as process:
        yield psutil.Process(process.pid)
        process.kill()


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    folder = tmp_path / "cluster"
    (folder / "etcd" / "member").mkdir(parents=True, mode=0o700)
    (folder / "etcd" / "member" / "db").write_text("data")
    (folder / "pki").mkdir(mode=0o700)
    (folder / "pki" / "sa.key").touch(mode=0o600)
    (folder / "etcd.log").write_text("not part of the state")
    return folder


@pytest.fixture
def state(tmp_path: Path) -> SavedState:
    return SavedState.of(tmp_path / "cache", "0" * 64)


def test_a_saved_state_is_restored_as_it_was(
    state: SavedState, cluster: Path, etcd: psutil.Process, tmp_path: Path
) -> None:
    assert not state.exists()
    state.save(cluster, etcd.pid, PORTS)
    assert state.exists()
    assert state.ports() == PORTS
    other = tmp_path / "other"
    other.mkdir()
    state.restore(other)
    assert (other / "etcd" / "member" / "db").read_text() == "data"
    assert stat.S_IMODE((other / "pki" / "sa.key").stat().st_mode) == 0o600
    assert sorted(path.name for path in other.iterdir()) == ["etcd", "pki"]


def test_only_its_user_can_read_a_saved_state(state: SavedState, cluster: Path, etcd: psutil.Process) -> None:
    state.save(cluster, etcd.pid, PORTS)
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700
    assert stat.S_IMODE(state.path.parent.stat().st_mode) == 0o700


def test_another_digest_is_another_state(state: SavedState, cluster: Path, etcd: psutil.Process) -> None:
    state.save(cluster, etcd.pid, PORTS)
    assert not SavedState.of(state.path.parent.parent, "1" * 64).exists()


def test_etcd_stands_still_while_it_is_copied_and_goes_on(
    state: SavedState, cluster: Path, etcd: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, str] = {}
    whole = shutil.copytree

    def copytree(source: Path, *about: Any) -> Any:
        seen[Path(source).name] = etcd.status()
        return whole(source, *about)

    monkeypatch.setattr(shutil, "copytree", copytree)
    state.save(cluster, etcd.pid, PORTS)
    assert seen["etcd"] == psutil.STATUS_STOPPED
    assert seen["pki"] != psutil.STATUS_STOPPED


def test_a_copy_that_fails_lets_etcd_go_on_and_leaves_nothing(
    state: SavedState, cluster: Path, etcd: psutil.Process
) -> None:
    shutil.rmtree(cluster / "etcd")
    with pytest.raises(ClusterError, match=r"the state of cluster could not be saved in .*state: .*No such file"):
        state.save(cluster, etcd.pid, PORTS)
    until(lambda: etcd.status() != psutil.STATUS_STOPPED)
    assert list(state.path.parent.iterdir()) == []


def test_an_etcd_that_is_gone_is_no_state(state: SavedState, cluster: Path, etcd: psutil.Process) -> None:
    etcd.kill()
    etcd.wait()
    with pytest.raises(ClusterError, match="could not be saved"):
        state.save(cluster, etcd.pid, PORTS)
    assert not state.exists()


def test_the_first_of_several_that_save_at_once_wins(
    state: SavedState, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=10)
    whole = Path.rename

    def rename(path: Path, target: Path) -> Path:
        both.wait()  # both have copied, and believe to be the first
        return whole(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    failed: list[BaseException] = []

    def save(port: int) -> None:
        try:
            with running() as etcd:
                state.save(cluster, etcd.pid, {"a/b": port})
        except BaseException as error:  # noqa: BLE001 - it is the test's
            failed.append(error)

    savers = [threading.Thread(target=save, args=[port]) for port in (11111, 22222)]
    for saver in savers:
        saver.start()
    for saver in savers:
        saver.join()
    assert not failed
    assert state.ports()["a/b"] in (11111, 22222)
    assert [path.name for path in state.path.parent.iterdir()] == [state.path.name]


def test_a_state_is_made_anew_once_it_is_too_old(state: SavedState, cluster: Path, etcd: psutil.Process) -> None:
    state.save(cluster, etcd.pid, PORTS)
    long_ago = time.time() - USABLE_DAYS * 86400 - 1
    os.utime(state.path / "ports.json", (long_ago, long_ago))
    assert not state.exists()
    state.save(cluster, etcd.pid, {"a/b": 11111})
    assert state.exists()
    assert state.ports() == {"a/b": 11111}
