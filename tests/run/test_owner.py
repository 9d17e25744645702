from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from raykueue.controllers.settings import DEFAULT, Settings
from raykueue.errors import ClusterError, ComponentDied, InfraError, UsageError
from raykueue.run.live import LiveRun
from raykueue.run.options import RunOptions
from raykueue.run.owner import Owner
from raykueue.run.session import Lease
from raykueue.run.wire import Connection

GATED = Settings(kuberay_gates={"A": True})


FAULTS = ("kill", "start_component", "stop_node", "start_node", "restart_kubelet")


class FakeRun:
    """A run that is up at once, or when the test says so."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.fails: Exception | None = None
        self.go = threading.Event()
        self.go.set()
        self.opening = threading.Event()
        self.log: Callable[[str], None] = lambda _: None
        self.on_death: Callable[[ComponentDied], None] = lambda _: None
        self.changes: list[Settings] = []
        self.done: list[tuple[str, str]] = []
        self.recording = object()
        cluster = SimpleNamespace(**{name: self._noting(name) for name in FAULTS})
        self.live = SimpleNamespace(change=lambda settings, _: self.changes.append(settings), cluster=cluster)

    def open(self, _options: RunOptions, _folder: Path, log: Callable[[str], None], on_death: Any) -> FakeRun:
        self.opened += 1
        self.log, self.on_death = log, on_death
        self.opening.set()
        assert self.go.wait(10)
        if self.fails is not None:
            raise self.fails
        return self

    def describe(self) -> dict[str, Any]:
        return {"kubeconfig": "k"}

    def close(self) -> None:
        self.closed += 1

    def _noting(self, what: str) -> Callable[[str], None]:
        return lambda component: self.done.append((what, component))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> FakeRun:
    fake = FakeRun()
    monkeypatch.setattr(LiveRun, "open", fake.open)
    return fake


@pytest.fixture
def failures() -> list[InfraError]:
    return []


@pytest.fixture
def owner(tmp_path: Path, run: FakeRun, failures: list[InfraError]) -> Iterator[Owner]:
    owner = Owner(RunOptions(), tmp_path, tmp_path / "journals", lambda _: None, failures.append)
    owner.start()
    yield owner
    run.go.set()
    owner.close()


@pytest.fixture
def ask(owner: Owner) -> Iterator[Callable[[str], Future[dict[str, Any]]]]:
    """Asks from a thread and a connection of its own."""

    def call(do: str) -> dict[str, Any]:
        connection = Connection(owner.socket, error=ClusterError)
        try:
            return connection.call(do, timeout_s=10)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        yield lambda do: pool.submit(call, do)


def asking_in_vain(connection: Connection, do: str, **arguments: Any) -> threading.Thread:
    """A thread that asks, and gets no answer."""

    def call() -> None:
        with pytest.raises(ClusterError):
            connection.call(do, timeout_s=10, **arguments)

    caller = threading.Thread(target=call)
    caller.start()
    return caller


def until(reached: Callable[[], bool]) -> None:
    deadline, pause = time.monotonic() + 10, threading.Event()
    while not reached():
        assert time.monotonic() < deadline, "not reached in time"
        pause.wait(0.005)


def test_nothing_is_started_until_somebody_asks(owner: Owner, run: FakeRun) -> None:
    owner.close()
    assert (run.opened, run.closed) == (0, 0)


def test_only_its_user_can_reach_it(owner: Owner) -> None:
    assert owner.socket.stat().st_mode & 0o777 == 0o600


def test_the_cluster_is_opened_once_for_all_that_ask_at_once(
    owner: Owner, run: FakeRun, ask: Callable[[str], Future[dict[str, Any]]]
) -> None:
    run.go.clear()
    asked = [ask("cluster") for _ in range(4)]
    assert run.opening.wait(10)
    assert not any(one.done() for one in asked)
    run.go.set()
    answers = [one.result(10) for one in asked]
    assert answers == [{"kubeconfig": "k", "journals": str(owner.socket.parent / "journals")}] * 4
    assert run.opened == 1
    owner.close()
    assert run.closed == 1


def test_a_test_process_that_dies_while_the_cluster_comes_up_takes_nothing_with_it(
    owner: Owner, run: FakeRun, ask: Callable[[str], Future[dict[str, Any]]]
) -> None:
    run.go.clear()
    first = Connection(owner.socket, error=ClusterError)
    caller = asking_in_vain(first, "cluster")
    assert run.opening.wait(10)
    first.close()
    caller.join()
    second = ask("cluster")
    run.go.set()
    assert second.result(10)["kubeconfig"] == "k"
    assert run.opened == 1


def test_a_start_that_failed_is_not_tried_again(
    owner: Owner, run: FakeRun, ask: Callable[[str], Future[dict[str, Any]]]
) -> None:
    run.fails = ComponentDied("etcd of cluster c ended by itself")
    for do in ("cluster", "lease"):
        with pytest.raises(ComponentDied, match="etcd of cluster c"):
            ask(do).result(10)
    assert run.opened == 1
    assert isinstance(owner.failure, ComponentDied)
    owner.close()
    assert run.closed == 0


@pytest.mark.parametrize("error", [UsageError("runs other versions"), OSError("disk full")], ids=["usage", "disk"])
def test_what_is_no_failure_of_a_cluster_is_not_tried_again_either(
    run: FakeRun, ask: Callable[[str], Future[dict[str, Any]]], error: Exception, capfd: pytest.CaptureFixture[str]
) -> None:
    run.fails = error
    for _ in range(2):
        with pytest.raises((UsageError, InfraError), match=str(error)):
            ask("cluster").result(10)
    assert run.opened == 1


def test_a_component_that_dies_fails_the_run_and_every_later_request(
    owner: Owner, run: FakeRun, failures: list[InfraError], ask: Callable[[str], Future[dict[str, Any]]]
) -> None:
    ask("cluster").result(10)
    run.on_death(ComponentDied("kueue of cluster c ended by itself"))
    assert [str(one) for one in failures] == ["kueue of cluster c ended by itself"]
    with pytest.raises(ComponentDied, match="kueue of cluster c"):
        ask("lease").result(10)
    owner.close()
    assert run.closed == 1


def test_test_processes_are_told_of_a_death_whatever_they_wait_for(owner: Owner, run: FakeRun) -> None:
    told: list[dict[str, Any]] = []
    connection = Connection(owner.socket, on_push=told.append, error=ClusterError)
    connection.call("cluster")
    run.on_death(ComponentDied("kueue of cluster c ended by itself"))
    until(lambda: bool(told))
    assert told == [{"push": "died", "error": "kueue of cluster c ended by itself"}]
    connection.close()


def test_a_cluster_whose_nodes_are_not_ours_says_so(owner: Owner, run: FakeRun) -> None:
    run.live.cluster = SimpleNamespace(name="theirs", kill=print, start_component=print)
    lease = Lease(owner.socket)
    with pytest.raises(UsageError, match="the nodes of cluster theirs are not ours: no stop_node"):
        lease.stop_node("worker")
    lease.release()


def test_leases_end_with_their_connections(owner: Owner, run: FakeRun) -> None:
    reader = Lease(owner.socket)
    writers: list[Lease] = []
    writer = threading.Thread(target=lambda: writers.append(Lease(owner.socket, GATED)))
    writer.start()
    assert run.changes == []
    reader.release()
    writer.join(10)
    assert run.changes == [GATED]
    writers[0].kill("kueue")
    writers[0].start_component("kueue")
    for fault in (writers[0].stop_node, writers[0].start_node, writers[0].restart_kubelet):
        fault("worker")
    assert run.done == [(name, "kueue") for name in FAULTS[:2]] + [(name, "worker") for name in FAULTS[2:]]
    writers[0].release()
    Lease(owner.socket).release()
    assert run.changes == [GATED, DEFAULT]


def test_a_test_process_that_dies_while_it_waits_holds_nobody_up(owner: Owner, run: FakeRun) -> None:
    reader = Lease(owner.socket)
    waiting = Connection(owner.socket, error=ClusterError)
    caller = asking_in_vain(waiting, "lease", settings=GATED.as_dict())
    until(lambda: len(owner._leases._waiting) == 1)
    waiting.close()
    caller.join()
    Lease(owner.socket).release()
    reader.release()
    assert run.changes == []


def test_an_unknown_request_is_told(ask: Callable[[str], Future[dict[str, Any]]]) -> None:
    with pytest.raises(InfraError, match="the owner does not know the request 'dance'"):
        ask("dance").result(10)


def test_closing_waits_for_a_cluster_that_just_comes_up_and_ends_it(owner: Owner, run: FakeRun) -> None:
    run.go.clear()
    connection = Connection(owner.socket, error=ClusterError)
    caller = asking_in_vain(connection, "cluster")
    assert run.opening.wait(10)
    closer = threading.Thread(target=owner.close)
    closer.start()
    caller.join(10)  # the server has hung up
    connection.close()
    assert run.closed == 0
    run.go.set()
    closer.join(10)
    assert run.closed == 1


def test_closing_gives_up_a_start_at_its_next_word(owner: Owner, run: FakeRun) -> None:
    run.go.clear()
    connection = Connection(owner.socket, error=ClusterError)
    caller = asking_in_vain(connection, "cluster")
    assert run.opening.wait(10)
    run.log("building kueue (3 of 9): 0:15 so far")
    closer = threading.Thread(target=owner.close)
    closer.start()
    until(owner._closing.is_set)
    with pytest.raises(ClusterError, match="the run was ended while its cluster was being started"):
        run.log("building kueue (3 of 9): 0:30 so far")
    run.fails = ClusterError("ended")
    run.go.set()
    closer.join(10)
    caller.join(10)
    connection.close()
    assert run.closed == 0


def test_after_closing_nothing_is_started_any_more(
    owner: Owner, run: FakeRun, ask: Callable[[str], Future[dict[str, Any]]]
) -> None:
    owner.close()
    owner.close()
    with pytest.raises(ClusterError, match="can't connect"):
        ask("cluster").result(10)
    assert run.opened == 0


def test_an_owner_that_can_not_listen_says_so(tmp_path: Path) -> None:
    owner = Owner(RunOptions(), tmp_path / "nowhere", tmp_path, lambda _: None, lambda _: None)
    with pytest.raises(InfraError, match=r"the owner can't listen at .*nowhere/owner.sock: .*No such file"):
        owner.start()
    owner.close()
