"""A client's connections over TLS, and whether any is left open when its loop has ended."""

from __future__ import annotations

import asyncio
import gc
import ssl
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from raykueue.clusters.pki import Authority
from raykueue.kube.access import Access
from raykueue.kube.session import ApiRefused, ApiSession


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Access]:
    """An API server that answers one request, and begins an answer to another that never ends."""
    for name, text in zip(("crt", "key"), Authority("test").issue("server", names=["127.0.0.1"]), strict=True):
        (tmp_path / name).write_text(text)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    loop, stop, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    address: list[str] = []

    async def one(_: web.Request) -> web.Response:
        return web.json_response({})

    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"{}")
        await stop.wait()
        return answer

    async def serve() -> None:
        app = web.Application()
        app.router.add_get("/one", one)
        app.router.add_get("/stream", stream)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        address.append(f"https://127.0.0.1:{runner.addresses[0][1]}")
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield Access(address[0], ca_file="", verify=False)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


async def answered(access: Access) -> None:
    async with ApiSession(access) as api:
        assert await api.get("/one") == {}


async def refused(access: Access) -> None:
    async with ApiSession(access) as api:
        with pytest.raises(ApiRefused):
            await api.get("/nothing")


async def left_in_the_middle(access: Access) -> None:
    async with ApiSession(access) as api, api.stream("/stream", {}, 10.0) as content:
        assert await content.readany() == b"{}"


@pytest.mark.parametrize("use", [answered, refused, left_in_the_middle])
def test_no_connection_is_left_open(use: Callable[[Access], Coroutine[Any, Any, None]], server: Access) -> None:

    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(use(server))
        gc.collect()
    assert [str(one.message) for one in caught] == []
