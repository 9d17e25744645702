"""Commands in containers, against a websocket that speaks as an API server does (v4.channel.k8s.io)."""

from __future__ import annotations

import asyncio
import gc
import json
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web

from raykueue.errors import ClusterError
from raykueue.kube.access import Access
from raykueue.kube.exec import Container, Ran, WebsocketExec
from tests.kube.serving import serving

WHERE = Container("ns", "pod", "container")
STDOUT, STDERR, ERROR = b"\x01", b"\x02", b"\x03"
SUCCESS = ERROR + json.dumps({"status": "Success"}).encode()


@contextmanager
def container(
    answer: Callable[[web.Request, web.WebSocketResponse], Awaitable[None]], tls_in: Path | None = None
) -> Iterator[WebsocketExec]:
    """An API server whose one container answers every command so."""

    async def handle(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        await answer(request, socket)
        await socket.close()
        return socket

    with serving({"/api/v1/namespaces/ns/pods/pod/exec": handle}, tls_in) as address:
        yield WebsocketExec(Access(address, ca_file="", token="secret", verify=False))  # noqa: S106 - nobody's


def test_a_command_says_what_it_wrote_and_how_it_ended() -> None:
    seen: list[object] = []

    async def answer(request: web.Request, socket: web.WebSocketResponse) -> None:
        seen.extend([request.query.getall("command"), request.query["container"], request.headers["authorization"]])
        await socket.send_bytes(STDOUT + b"out, ")
        await socket.send_bytes(STDERR + b"err")
        await socket.send_bytes(SUCCESS)

    with container(answer) as run:
        assert run(WHERE, ["echo", "a b"]) == Ran(0, "out, err")
    assert seen == [["echo", "a b"], "container", "Bearer secret"]


def test_an_exit_code_is_read_from_the_status() -> None:
    async def answer(_: web.Request, socket: web.WebSocketResponse) -> None:
        causes = [{"reason": "ExitCode", "message": "124"}]
        status = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
        await socket.send_bytes(ERROR + json.dumps(status).encode())

    with container(answer) as run:
        assert run(WHERE, ["false"]).exit_code == 124


def test_a_connection_that_ends_without_a_status_is_infrastructure() -> None:
    async def answer(_: web.Request, socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(STDOUT + b"half")

    with container(answer) as run, pytest.raises(ClusterError, match="exec in ns/pod/container: true: the connection"):
        run(WHERE, ["true"])


def test_a_command_that_can_not_be_started_is_infrastructure() -> None:
    async def answer(_: web.Request, socket: web.WebSocketResponse) -> None:
        status = {"status": "Failure", "reason": "InternalError", "message": "no such file: bash"}
        await socket.send_bytes(ERROR + json.dumps(status).encode())

    with container(answer) as run, pytest.raises(ClusterError, match="no such file: bash"):
        run(WHERE, ["bash"])


def test_a_command_that_does_not_end_is_given_up_at_the_deadline() -> None:
    async def answer(_: web.Request, socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(STDOUT + b"so far")
        await asyncio.sleep(5)  # longer than the deadline

    with container(answer) as run, pytest.raises(ClusterError, match=r"did not end within 0\.3 s; so far: 'so far'"):
        run(WHERE, ["cat"], 0.3)


def test_a_container_that_is_not_there_is_infrastructure() -> None:
    async def answer(_: web.Request, __: web.WebSocketResponse) -> None:
        raise AssertionError

    nowhere = Container("ns", "other", "container")
    with container(answer) as run, pytest.raises(ClusterError, match="exec in ns/other/container: true: not possible"):
        run(nowhere, ["true"])


def test_an_api_server_that_is_not_there_is_infrastructure() -> None:
    run = WebsocketExec(Access("http://127.0.0.1:1", ca_file=""))
    with pytest.raises(ClusterError, match="not possible"):
        run(WHERE, ["true"])


async def succeeds(_: web.Request, socket: web.WebSocketResponse) -> None:
    await socket.send_bytes(SUCCESS)


async def breaks(_: web.Request, __: web.WebSocketResponse) -> None:
    raise web.HTTPNotFound


def test_a_connection_that_breaks_is_infrastructure(tmp_path: Path) -> None:
    with container(breaks, tmp_path) as execute, pytest.raises(ClusterError, match="closed before it had ended"):
        execute(WHERE, ["true"])


@pytest.mark.parametrize(
    ("answer", "where"), [(succeeds, WHERE), (breaks, WHERE), (succeeds, Container("ns", "nowhere", "container"))]
)
def test_no_connection_is_left_open(
    answer: Callable[[web.Request, web.WebSocketResponse], Awaitable[None]], where: Container, tmp_path: Path
) -> None:
    with container(answer, tmp_path) as execute:
        gc.collect()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with suppress(ClusterError):
                execute(where, ["true"])
            gc.collect()
    assert [str(one.message) for one in caught] == []
