"""Questions and answers as JSON lines over a Unix socket: the client, and the asyncio server.

    → {"id": 7, "do": "open", …}
    ← {"id": 7, "ok": {…}}   or   {"id": 7, "error": "text", "kind": "RecorderError"}
    ← {"push": "event", …}        whenever the server likes

Requests of one connection run at the same time; answers come in any order. Everything that was pushed before an
answer was sent arrives before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from raykueue import errors
from raykueue.errors import InfraError

BUFFER_BYTES = 64 << 20
"""What may wait for a client that doesn't read; beyond it the connection is dropped."""
LINE_BYTES = 16 << 20
CONNECT_S = 10.0
_SUN_PATH = 100
"""A Unix socket's path has room for 104 bytes on macOS, 108 on Linux."""

Message: TypeAlias = dict[str, Any]


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """The path itself, or a short name for it: run folders may be deeper than a socket's address allows."""
    if len(os.fsencode(path)) <= _SUN_PATH or not Path("/proc/self/fd").is_dir():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


# ---- client ----------------------------------------------------------------------------------------------------------


class _Answer:
    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.message: Message | None = None


class Connection:
    """The client's end, for any number of threads; one thread of its own reads."""

    def __init__(
        self,
        path: Path,
        *,
        on_push: Callable[[Message], None] | None = None,
        on_lost: Callable[[], None] | None = None,
        error: type[InfraError] = InfraError,
        explain: Callable[[], str] = str,
    ) -> None:
        """Connects.

        Args:
            path: the server's socket.
            on_push: called in the reading thread, in order.
            on_lost: called in the reading thread when the server is gone.
            error: raised when the server can't be reached, is lost or too slow.
            explain: text appended to that error, such as the last lines of the server's log.

        Raises:
            InfraError: of class `error`; nobody listens at `path`.
        """
        self._path = path
        self._on_push = on_push
        self._on_lost = on_lost
        self._error = error
        self._explain = explain
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, _Answer] = {}
        self._lost = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(CONNECT_S)
        try:
            with _address(path) as address:
                self._socket.connect(address)
        except OSError as failure:
            self._socket.close()
            raise self.failure(f"can't connect: {failure}") from failure
        self._socket.settimeout(None)
        self._reader = threading.Thread(target=self._read, name=f"reads {path.name}", daemon=True)
        self._reader.start()

    def call(self, do: str, timeout_s: float = 60.0, **arguments: Any) -> Message:
        """Asks, waits, and returns what the server answered.

        Raises:
            InfraError: the server is gone or doesn't answer in time, or whatever error of `raykueue.errors` it names.
        """
        number, answer = next(self._ids), _Answer()
        line = json.dumps({"id": number, "do": do, **arguments}, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            if self._lost:
                raise self.failure(f"{do}: the connection is lost")
            self._waiting[number] = answer
            try:
                self._socket.sendall(line)
            except OSError as failure:
                del self._waiting[number]
                raise self.failure(f"{do}: the connection is lost: {failure}") from failure
        if not answer.arrived.wait(timeout_s):
            with self._lock:
                self._waiting.pop(number, None)
            raise self.failure(f"{do}: no answer within {timeout_s:g} s")
        message = answer.message
        if message is None:
            raise self.failure(f"{do}: the connection was lost before the answer")
        if "error" in message:
            raise _error_class(str(message.get("kind")))(str(message["error"]))
        ok: Message = message["ok"]
        return ok

    def close(self) -> None:
        """Hangs up; requests that still wait fail."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._reader:
            self._reader.join(CONNECT_S)
        self._socket.close()

    @property
    def lost(self) -> bool:
        """The server, or `close`, has ended the connection."""
        return self._lost

    def failure(self, what: str) -> InfraError:
        """The error to raise for this connection: `what`, then the explanation."""
        explained = self._explain()
        return self._error(f"{self._path.name}: {what}" + (f"\n{explained}" if explained else ""))

    def _read(self) -> None:
        with self._socket.makefile("rb") as stream, contextlib.suppress(OSError):
            for line in stream:
                self._take(json.loads(line))
        with self._lock:
            self._lost = True
            waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            answer.arrived.set()
        if self._on_lost is not None:
            self._on_lost()

    def _take(self, message: Message) -> None:
        if "push" in message:
            if self._on_push is not None:
                self._on_push(message)
            return
        with self._lock:
            answer = self._waiting.pop(message["id"], None)
        if answer is not None:
            answer.message = message
            answer.arrived.set()


def _error_class(name: str) -> type[Exception]:
    found = getattr(errors, name, None) if name in errors.__all__ else None
    return found if isinstance(found, type) and issubclass(found, Exception) else InfraError


# ---- server ----------------------------------------------------------------------------------------------------------


class Peer:
    """One connected client, as the server sees it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.gone = False

    def push(self, line: str) -> None:
        """Sends one encoded message, never waiting; a client that doesn't read is dropped beyond `BUFFER_BYTES`."""
        if self.gone:
            return
        self._writer.write(line.encode() + b"\n")
        if self._writer.transport.get_write_buffer_size() > BUFFER_BYTES:
            self.drop(f"more than {BUFFER_BYTES >> 20} MB wait for a client that doesn't read")

    def drop(self, why: str) -> None:
        """Ends the connection at once."""
        self.gone = True
        sys.stderr.write(f"connection dropped: {why}\n")
        self._writer.transport.abort()


Handler: TypeAlias = Callable[[Peer, str, Message], Awaitable[Mapping[str, Any]]]


class Server:
    """Listens on a socket that only this user can open, and answers with what `handle(peer, do, arguments)` returns.

    `handle` runs once per request, as a task of its own; an error of `raykueue.errors` that it raises reaches the
    client as that error. `gone(peer)` is called once per connection, when it has ended.
    """

    def __init__(self, path: Path, handle: Handler, gone: Callable[[Peer], None]) -> None:
        self._path = path
        self._handle = handle
        self._gone = gone
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Begins to listen; a socket file left by a dead server is replaced."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._path.unlink(missing_ok=True)
            with _address(self._path) as address:
                listener.bind(address)
            self._path.chmod(0o600)  # before anybody can connect: start_unix_server calls listen()
            self._server = await asyncio.start_unix_server(self._connected, sock=listener, limit=LINE_BYTES)
        except BaseException:
            listener.close()
            raise

    async def stop(self) -> None:
        """Hangs up on everybody."""
        if self._server is not None:
            self._server.close()
        connections = list(self._connections)
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        peer = Peer(writer)
        requests: set[asyncio.Task[None]] = set()
        try:
            while line := await reader.readline():
                request = asyncio.create_task(self._answer(peer, line))
                requests.add(request)
                request.add_done_callback(requests.discard)
        except (OSError, ValueError) as error:  # ValueError: a line beyond the limit
            peer.drop(str(error))
        except asyncio.CancelledError:
            pass  # by stop(); this task ends here, and asyncio would log a cancelled handler as an error
        finally:
            peer.gone = True
            for request in requests:
                request.cancel()
            self._gone(peer)
            writer.close()
            self._connections.discard(task)

    async def _answer(self, peer: Peer, line: bytes) -> None:
        number: Any = None
        try:
            message = json.loads(line)
            number, do = message.pop("id"), message.pop("do")
            answer: Message = {"id": number, "ok": dict(await self._handle(peer, do, message))}
        except Exception as error:  # noqa: BLE001 - one bad request must not end the server, and its sender must know
            known = type(error).__name__ in errors.__all__
            if not known:
                traceback.print_exc()
            text = str(error) if known else f"{type(error).__name__}: {error}"
            answer = {"id": number, "error": text, "kind": type(error).__name__ if known else "InfraError"}
        peer.push(json.dumps(answer, separators=(",", ":")))
