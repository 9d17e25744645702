"""Running a command in a container, as `kubectl exec` does: over a websocket to the API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp

from raykueue.errors import ClusterError
from raykueue.kube.access import Access
from raykueue.kube.connections import Connections

EXEC_SECONDS = 30.0
"""Deadline of one command: the start of a process in a container of a busy node took 2 s at most."""


_PROTOCOL = "v4.channel.k8s.io"
"""Of remote commands: a message's first byte is its channel (k8s.io/apimachinery pkg/util/remotecommand@v0.34.4)."""
_STATUS = b"\x03"
"""The channel of the Status that says how the command ended; the others are what it wrote."""


@dataclass(frozen=True, slots=True)
class Container:
    """Where a command runs."""

    namespace: str
    pod: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}/{self.name}"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    exit_code: int
    output: str
    """What it wrote to stdout and stderr, in order of arrival."""


class Exec(Protocol):
    """Runs commands in containers."""

    def __call__(self, container: Container, command: Sequence[str], seconds: float = EXEC_SECONDS) -> Ran:
        """Runs one command to its end. Raises ClusterError if it could not be run, or did not end in time."""
        ...


class WebsocketExec:
    """Runs commands through the API server. Every call is a connection of its own: safe in threads and forks."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def __call__(self, container: Container, command: Sequence[str], seconds: float = EXEC_SECONDS) -> Ran:
        """Runs one command to its end.

        Raises:
            ClusterError: there is no such container, nobody lets us in, or it did not end within `seconds`.
        """
        what = f"exec in {container}: {' '.join(command)[:200]}"
        output = bytearray()
        try:
            outcome = asyncio.run(self._run(container, command, seconds, output))
        except TimeoutError as error:
            so_far = output.decode(errors="replace")[-300:]
            raise ClusterError(f"{what}: did not end within {seconds:g} s; so far: {so_far!r}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ClusterError(f"{what}: not possible: {error}") from error
        if not outcome:
            raise ClusterError(f"{what}: the connection was closed before it had ended")
        return Ran(_exit_code(what, json.loads(outcome)), output.decode(errors="replace"))

    async def _run(self, container: Container, command: Sequence[str], seconds: float, output: bytearray) -> bytes:
        """Adds to `output`; returns the Status (JSON) that ends the command, empty if none came."""
        url = f"{self._access.server}/api/v1/namespaces/{container.namespace}/pods/{container.pod}/exec"
        query = [("container", container.name), ("stdout", "true"), ("stderr", "true")]
        query += [("command", word) for word in command]
        access, outcome, connections = self._access, b"", Connections()
        try:
            async with (
                asyncio.timeout(seconds),
                aiohttp.ClientSession(connector=connections.connector(access)) as session,
                session.ws_connect(
                    url,
                    params=query,
                    protocols=(_PROTOCOL,),
                    headers=access.headers(),
                    proxy=access.proxy or None,
                    server_hostname=access.server_name or None,
                ) as stream,
            ):
                async for message in stream:
                    if message.type != aiohttp.WSMsgType.BINARY:
                        break  # the connection is broken
                    channel, content = message.data[:1], message.data[1:]
                    if channel == _STATUS:
                        outcome += content
                    else:
                        output += content
        finally:
            await connections.closed()
        return outcome


def _exit_code(what: str, status: Mapping[str, Any]) -> int:
    if status["status"] == "Success":
        return 0
    if status.get("reason") != "NonZeroExitCode":
        raise ClusterError(f"{what}: not possible: {status.get('message', status)}")
    return next(int(cause["message"]) for cause in status["details"]["causes"] if cause["reason"] == "ExitCode")
