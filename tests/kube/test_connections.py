"""A client's connections over TLS, and whether any is left open when its loop has ended."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from raykueue.kube.access import Access
from raykueue.kube.session import ApiRefused, ApiSession
from tests.kube.serving import serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Access]:
    """An API server that answers one request, and begins an answer to another that never ends."""

    async def one(_: web.Request) -> web.Response:
        return web.json_response({})

    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"{}")
        await asyncio.Event().wait()
        return answer

    with serving({"/one": one, "/stream": stream}, tmp_path) as address:
        yield Access(address, ca_file="", verify=False)


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
