from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from raykueue.clusters.kind import commands as commands_module
from raykueue.clusters.kind.commands import CommandFailed, Commands, environment, passes_by_itself
from raykueue.errors import ClusterError
from tests.clusters.kind.tools import Tools


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands_module, "wait_exponential", lambda **_: lambda _state: 0.0)


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("Bind for 127.0.0.1:40001 failed: port is already allocated", True),
        ("listen tcp4 127.0.0.1:40001: bind: address already in use", True),
        ("net/http: TLS handshake timeout", True),
        ("read tcp 10.0.0.1:443: connection reset by peer", True),
        ("received unexpected HTTP status: 503 Service Unavailable", True),
        ("dial tcp: lookup host: Temporary failure in name resolution", True),
        ("manifest for kueue:v0 not found: manifest unknown", False),
        ("no space left on device", False),
        ("could not find a log line that matches", False),
        ("failed to init node with kubeadm: exit status 1\n I1201 round_trippers.go: TLS handshake timeout", False),
        ("failed to join node with kubeadm: exit status 1\n dial tcp: i/o timeout", False),
        ('failed to init node with kubeadm: command "docker exec" failed with error: exit status 1', False),
    ],
)
def test_only_what_is_known_to_pass_by_itself_is_tried_again(said: str, passes: bool) -> None:
    assert passes_by_itself(CommandFailed("pulling", ["docker", "pull"], 1, said)) is passes


def test_other_errors_than_those_of_a_command_never_pass_by_themselves() -> None:
    assert not passes_by_itself(ClusterError("i/o timeout"))


def test_a_passing_error_is_tried_again_after_what_it_left_is_removed(tools: Tools, commands: Commands) -> None:
    tools.answer("create", err="port is already allocated", code=1, times=2)
    tools.answer("create", out="done")
    undone: list[int] = []
    out = commands.persistently("creating", ["kind", "create"], 10, undo=lambda: undone.append(len(tools.calls)))
    assert out.strip() == "done"
    assert undone == [1, 2]


def test_after_three_tries_it_is_over(tools: Tools, commands: Commands) -> None:
    tools.answer("pull", err="i/o timeout", code=1)
    with pytest.raises(CommandFailed, match="pulling failed: `docker pull x` ended with code 1:\ni/o timeout"):
        commands.persistently("pulling", ["docker", "pull", "x"], 10, undo=lambda: None)
    assert len(tools.calls) == 3


def test_another_error_is_not_tried_again(tools: Tools, commands: Commands) -> None:
    tools.answer("pull", err="manifest unknown", code=1)
    with pytest.raises(CommandFailed, match="manifest unknown"):
        commands.persistently("pulling", ["docker", "pull", "x"], 10, undo=lambda: None)
    assert len(tools.calls) == 1


def test_a_command_that_takes_too_long_is_ended(tools: Tools, commands: Commands) -> None:
    tools.answer("create", seconds=60)
    with pytest.raises(ClusterError, match=r"creating: `kind create` was not done in 0\.1 s, and was ended"):
        commands.run("creating", ["kind", "create"], 0.1)


def test_giving_up_ends_what_runs_and_lets_nothing_begin(tools: Tools, commands: Commands) -> None:
    tools.answer("create", seconds=60)
    threading.Timer(0.2, commands.give_up).start()
    began = time.monotonic()
    with pytest.raises(ClusterError, match="not wanted any more"):
        commands.run("creating", ["kind", "create"], 60)
    assert time.monotonic() - began < 10
    with pytest.raises(ClusterError, match="not wanted any more"):
        commands.run("creating", ["kind", "version"], 60)
    assert ["kind", "version"] not in tools.calls


def test_whoever_looks_can_end_a_command(tools: Tools) -> None:
    tools.answer("create", seconds=60)

    def look() -> None:
        if tools.calls:
            raise ClusterError("the run was ended")

    with pytest.raises(ClusterError, match="the run was ended"):
        Commands({"PATH": tools.path}, look).run("creating", ["kind", "create"], 60)


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="asking Docker: there is no docker here; install it, or put it in the PATH"):
        Commands({"PATH": str(tmp_path)}).run("asking Docker", ["docker"], 10)


def test_no_command_sees_the_users_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/home/me/.kube/config")
    monkeypatch.setenv("DOCKER_HOST", "unix:///elsewhere")
    seen = environment(tmp_path / "own", "raykueue-dev")
    assert seen["KUBECONFIG"] == str(tmp_path / "own")
    assert seen["KIND_EXPERIMENTAL_DOCKER_NETWORK"] == "raykueue-dev"
    assert seen["DOCKER_HOST"] == "unix:///elsewhere"
