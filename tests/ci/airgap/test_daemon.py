from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from ci.airgap.daemon import SHIM, Daemon, Helpers, daemon_config
from ci.airgap.machine import Machine
from ci.airgap.places import Places
from raykueue.errors import InfraError

HELPERS = Helpers(Path("/bin/proxy"), Path("/bin/shim"), Path("/bin/nonames"))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "state", tmp_path / "data")


@pytest.fixture
def daemon(places: Places) -> Daemon:
    places.state.mkdir()
    return Daemon(places, lambda _: None)


def note(places: Places, pid: int, started: float) -> None:
    places.process.write_text(json.dumps({"pid": pid, "started": started}))


def test_it_listens_on_its_own_socket_only_and_keeps_everything_in_its_own_folders(places: Places) -> None:
    config = daemon_config(places, HELPERS, SHIM)
    assert config["hosts"] == [f"unix://{places.state}/docker.sock"]
    assert config["data-root"] == str(places.data)
    assert (config["bridge"], config["cgroup-parent"]) == ("none", f"/{places.cgroup}")
    assert config["default-runtime"] == SHIM
    assert config["runtimes"][SHIM] == {"path": "/bin/shim"}
    assert config["userland-proxy-path"] == "/bin/proxy"


def test_two_daemons_of_one_machine_have_two_cgroups(tmp_path: Path, places: Places) -> None:
    assert places.cgroup != replace(places, state=tmp_path / "other").cgroup


def test_a_noted_process_is_the_daemon_only_if_it_started_then(daemon: Daemon) -> None:
    assert daemon.running() is None
    own = psutil.Process(os.getpid())
    note(daemon.places, own.pid, own.create_time())
    assert daemon.running() == own
    note(daemon.places, own.pid, own.create_time() - 60)
    assert daemon.running() is None
    daemon.places.process.write_text("half")
    assert daemon.running() is None


def test_after_a_daemon_that_was_killed_what_was_before_that_one_counts(daemon: Daemon) -> None:
    first = Machine.look()
    replace(first, sysctls={"kernel/panic": "first"}).save(daemon.places.before)
    daemon._remember_machine()
    assert Machine.load(daemon.places.before).sysctls == {"kernel/panic": "first"}


def test_after_another_boot_the_machine_is_looked_at_again(daemon: Daemon) -> None:
    replace(Machine.look(), boot="another", sysctls={}).save(daemon.places.before)
    daemon._remember_machine()
    assert Machine.load(daemon.places.before).sysctls


def test_stopping_what_was_never_started_does_nothing(places: Places) -> None:
    def helpers() -> Helpers:
        raise AssertionError("nothing is to be started")

    assert Daemon(places, lambda _: None).stop(helpers) == []
    assert not places.state.exists()


def test_a_stop_says_what_it_could_not_put_back(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Machine.look()
    replace(looks, links=[]).save(daemon.places.before)
    monkeypatch.setattr(Machine, "look", lambda: looks)
    assert daemon.stop(lambda: HELPERS) == [f"network interface {link} is new" for link in looks.links]
    assert not daemon.places.state.exists()


def test_two_commands_do_not_start_or_stop_at_once(daemon: Daemon) -> None:
    with daemon._lock(), pytest.raises(InfraError, match="another command is starting or stopping"):
        daemon.stop(lambda: HELPERS)
