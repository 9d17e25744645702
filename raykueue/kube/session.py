"""Asynchronous access to an API server: JSON in, JSON out, and streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import aiohttp

from raykueue.errors import ClusterError
from raykueue.kube.access import Access
from raykueue.kube.connections import Connections

TIMEOUT_S = 30.0
"""Deadline of one ordinary request; a stream has its own."""
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class ApiRefused(ClusterError):
    """The API server answered, but not with 2xx. `status` is the HTTP code."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ApiSession:
    """One pool of connections to one API server; use as `async with`.

    Every call raises `ApiRefused` for an answer other than 2xx, and aiohttp's ClientError, OSError or TimeoutError
    if there is none (`NO_ANSWER` names them all).
    """

    def __init__(self, access: Access) -> None:
        self._server = access.server
        self._access = access
        self._server_name = access.server_name or None
        self._connections = Connections()
        self._session = aiohttp.ClientSession(
            connector=self._connections.connector(access, limit=0),
            # Compressing and unpacking costs more CPU than loopback bandwidth saves.
            headers={"Accept-Encoding": "identity"},
            proxy=access.proxy or None,
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            read_bufsize=1 << 20,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()
        await self._connections.closed()

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> dict[str, Any]:
        """GET one object, list or discovery document."""
        return await self._call("GET", path, params=params)

    async def get_metadata(self, path: str) -> dict[str, Any]:
        """GET a consistent list of which the server sends the objects' metadata only."""
        return await self._call("GET", path, accept=_METADATA)

    async def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST one object to its collection."""
        return await self._call("POST", path, body=body)

    async def merge_patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """PATCH one object by JSON merge patch."""
        return await self._call("PATCH", path, body=body, content_type="application/merge-patch+json")

    async def delete(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """DELETE one object, with `DeleteOptions` as the body."""
        return await self._call("DELETE", path, body=body)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """GET an endless answer; TimeoutError if nothing arrives for `silence_s` seconds."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT_S, sock_read=silence_s)
        headers = self._access.headers()
        async with self._session.get(
            self._server + path, params=params, timeout=timeout, headers=headers, server_hostname=self._server_name
        ) as answer:
            await _check(answer, "GET", path)
            yield answer.content

    async def _call(
        self,
        verb: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._access.headers(), "Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        async with self._session.request(
            verb,
            self._server + path,
            params=params,
            data=data,
            headers=headers,
            server_hostname=self._server_name,
        ) as answer:
            await _check(answer, verb, path)
            answered: dict[str, Any] = json.loads(await answer.read())
            return answered


NO_ANSWER = (aiohttp.ClientError, OSError, TimeoutError)
"""What a call raises when the server can't be reached or stops in mid-answer."""


async def _check(answer: aiohttp.ClientResponse, verb: str, path: str) -> None:
    if answer.status < 300:
        return
    text = await answer.text(errors="replace")
    try:
        text = json.loads(text)["message"]
    except (ValueError, KeyError, TypeError):
        text = text[:300].strip()
    raise ApiRefused(answer.status, f"{verb} {path}: {answer.status} {text}")
