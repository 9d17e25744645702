"""A web server on loopback, in a thread and a loop of its own; with TLS, as an API server has it, or without."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from aiohttp import web

from raykueue.clusters.pki import Authority

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


@contextmanager
def serving(routes: Mapping[str, Handler], tls_in: Path | None = None) -> Iterator[str]:
    """Its address. `tls_in`: a folder for its certificate and key."""
    tls = _context(tls_in) if tls_in else None
    loop, stop, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    address: list[str] = []

    async def serve() -> None:
        app = web.Application()
        for path, handler in routes.items():
            app.router.add_get(path, handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        address.append(f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}")
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


def _context(folder: Path) -> ssl.SSLContext:
    certificate, key = folder / "tls.crt", folder / "tls.key"
    for path, text in zip((certificate, key), Authority("test").issue("server", names=["127.0.0.1"]), strict=True):
        path.write_text(text)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context
