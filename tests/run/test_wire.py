from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from raykueue.errors import InfraError, RecorderError, UsageError
from raykueue.run import wire
from raykueue.run.wire import Connection, Message, Peer, Server


class Running:
    """A server in a thread; `gone` collects the peers that went."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loop: asyncio.AbstractEventLoop
        self.stop: asyncio.Event
        self.peers: list[Peer] = []
        self.gone = threading.Semaphore(0)

    def end(self) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended already
            self.loop.call_soon_threadsafe(self.stop.set)


@contextmanager
def server(path: Path, handle: Callable[[Running, Peer, str, Message], Awaitable[dict[str, Any]]]) -> Iterator[Running]:
    running = Running(path)
    ready = threading.Event()

    async def main() -> None:
        running.loop, running.stop = asyncio.get_running_loop(), asyncio.Event()

        async def answer(peer: Peer, do: str, arguments: Message) -> dict[str, Any]:
            return await handle(running, peer, do, arguments)

        listening = Server(path, answer, lambda _: running.gone.release())
        await listening.start()
        ready.set()
        await running.stop.wait()
        await listening.stop()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert ready.wait(5)
    try:
        yield running
    finally:
        running.end()
        thread.join(10)


async def echo(running: Running, peer: Peer, do: str, arguments: Message) -> dict[str, Any]:
    match do:
        case "echo":
            return arguments
        case "push":
            for number in range(arguments["count"]):
                peer.push(json.dumps({"push": "n", "n": number}))
            return {}
        case "flood":
            for _ in range(100):
                peer.push(json.dumps({"push": "x", "x": "x" * 10_000}))
            return {}
        case "refuse":
            raise UsageError("no such thing")
        case "crash":
            return {"never": 1 // 0}
        case "wait":
            await asyncio.sleep(60)
    return {}


def test_a_request_gets_its_answer(tmp_path: Path) -> None:
    with server(tmp_path / "s", echo) as running:
        connection = Connection(running.path)
        assert connection.call("echo", a=1, b=["ü"]) == {"a": 1, "b": ["ü"]}
        connection.close()


def test_many_threads_share_a_connection_and_each_gets_its_own_answer(tmp_path: Path) -> None:
    with server(tmp_path / "s", echo) as running:
        connection = Connection(running.path)
        answers: dict[int, Message] = {}

        def ask(number: int) -> None:
            answers[number] = connection.call("echo", n=number)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == {number: {"n": number} for number in range(20)}
        connection.close()


def test_what_was_pushed_before_an_answer_arrives_before_it_and_in_order(tmp_path: Path) -> None:
    seen: list[int] = []
    with server(tmp_path / "s", echo) as running:
        connection = Connection(running.path, on_push=lambda message: seen.append(message["n"]))
        connection.call("push", count=500)
        assert seen == list(range(500))
        connection.close()


def test_errors_keep_their_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with server(tmp_path / "s", echo) as running:
        connection = Connection(running.path)
        with pytest.raises(UsageError, match=r"^no such thing$"):
            connection.call("refuse")
        with pytest.raises(InfraError, match="ZeroDivisionError"):
            connection.call("crash")
        assert connection.call("echo") == {}, "the server goes on"
        connection.close()
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_lost_server_ends_requests_that_wait_with_an_explanation(tmp_path: Path) -> None:
    lost = threading.Event()
    with server(tmp_path / "s", echo) as running:
        connection = Connection(running.path, error=RecorderError, explain=lambda: "its last words", on_lost=lost.set)
        running.loop.call_soon_threadsafe(running.loop.call_later, 0.05, running.stop.set)
        with pytest.raises(RecorderError, match=r"(?s)lost before the answer.*its last words"):
            connection.call("wait")
        assert lost.wait(5)
        with pytest.raises(RecorderError, match="the connection is lost"):
            connection.call("echo")
        connection.close()


def test_an_answer_that_does_not_come_is_an_error(tmp_path: Path) -> None:
    with server(tmp_path / "s", echo) as running:
        connection = Connection(running.path)
        with pytest.raises(InfraError, match=r"wait: no answer within 0.05 s"):
            connection.call("wait", timeout_s=0.05)
        connection.close()


def test_nobody_at_the_socket_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecorderError, match="can't connect"):
        Connection(tmp_path / "nobody", error=RecorderError)


def test_a_client_that_does_not_read_is_dropped_and_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wire, "BUFFER_BYTES", 200_000)
    with server(tmp_path / "s", echo) as running:
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.connect(str(running.path))
            deaf.sendall(b'{"id": 1, "do": "flood"}\n')
            assert running.gone.acquire(timeout=5)
        connection = Connection(running.path)
        assert connection.call("echo", a=1) == {"a": 1}
        connection.close()
    assert "a client that doesn't read" in capsys.readouterr().err


def test_the_server_hears_of_a_client_that_went(tmp_path: Path) -> None:
    with server(tmp_path / "s", echo) as running:
        Connection(running.path).close()
        assert running.gone.acquire(timeout=5)
