"""Connections of one asyncio client, and that none of them is left open when its loop ends."""

from __future__ import annotations

import asyncio
import socket
import time
import weakref
from typing import Any

import aiohttp

from raykueue.kube.access import Access

_CLOSING_SECONDS = 1.0
"""For connections to be closed, once they are not needed any more."""


class Connections:
    """What a client has opened.

    aiohttp closes a TLS connection in the background if it was upgraded, refused or left in the middle of an answer,
    and nothing tells when that is done (docs.aiohttp.org, client_advanced, Graceful Shutdown). A loop that ends before
    leaves sockets behind.
    """

    def __init__(self) -> None:
        self._opened: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def connector(self, access: Access, **more: Any) -> aiohttp.TCPConnector:
        """For a session with one API server."""
        return aiohttp.TCPConnector(ssl=access.ssl_context(), socket_factory=self._open, **more)

    async def closed(self) -> None:
        """Waits until they are; call it once the session is closed."""
        deadline = time.monotonic() + _CLOSING_SECONDS
        while any(one.fileno() != -1 for one in self._opened) and time.monotonic() < deadline:
            await asyncio.sleep(0.001)

    def _open(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, *_ = address
        opened = socket.socket(family, kind, protocol)
        self._opened.add(opened)
        return opened
