"""The control socket: test processes say here when a Ray job ends. One JSON object per line, both ways.

    {"id": 1, "do": "finish", "namespace": "ns", "name": "job", "exit_code": 0}
    {"id": 1, "ok": {…}}    or    {"id": 1, "error": "…", "kind": "usage" | "infra"}

Answers may overtake each other; the id tells whose they are.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from raykueue.errors import InfraError
from raykueue.kube.session import NO_ANSWER
from raykueue.ray.simulated.instructions import WrongState

Action: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any]]

LINE_LIMIT = 1 << 20


class ControlServer:
    """Serves named actions at a Unix socket that only its owner may use."""

    def __init__(self, path: Path, actions: Mapping[str, Action]) -> None:
        self._path = path
        self._actions = actions
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        """Listens. A socket file that an earlier process left behind is replaced."""
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(
            self._connected, str(self._path), limit=LINE_LIMIT, start_serving=False
        )
        self._path.chmod(0o600)
        await self._server.start_serving()

    async def stop(self) -> None:
        """Closes the socket and every connection; what was under way is given up."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.close()
        self._path.unlink(missing_ok=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while line := await reader.readline():
                task = asyncio.create_task(self._answer(line, writer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        except (ConnectionError, ValueError):
            pass  # gone, or a line beyond the limit: nothing to go on with
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        answer = json.dumps(await self._outcome(line)).encode() + b"\n"
        with suppress(ConnectionError):
            writer.write(answer)
            await writer.drain()

    async def _outcome(self, line: bytes) -> dict[str, Any]:
        number = None
        try:
            request = json.loads(line)
            number = request.get("id")
            action = self._actions.get(request.get("do", ""))
            if action is None:
                known = ", ".join(sorted(self._actions))
                return {
                    "id": number,
                    "error": f"no instruction {request.get('do')!r}; there are: {known}",
                    "kind": "usage",
                }
            return {"id": number, "ok": await action(request)}
        except WrongState as error:
            return {"id": number, "error": str(error), "kind": "usage"}
        except (InfraError, *NO_ANSWER) as error:
            return {"id": number, "error": f"{type(error).__name__}: {error}", "kind": "infra"}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return {"id": number, "error": f"not an instruction: {line[:200]!r}: {error!r}", "kind": "usage"}
