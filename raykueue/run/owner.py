"""The owner: the one process that has the cluster, the recorder and the report; tests ask it over a socket.

The cluster starts at the first request for it, so collecting tests, or running those that need none, starts nothing.
A lease belongs to the connection that took it and ends with it: a test process that dies holds nobody up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from raykueue.clusters.protocol import Faults, NodeFaults
from raykueue.controllers.settings import Settings
from raykueue.errors import ClusterError, ComponentDied, InfraError, UsageError
from raykueue.run.backends import Log
from raykueue.run.lease import Leases
from raykueue.run.leftovers import OWNER_SOCKET
from raykueue.run.live import LiveRun
from raykueue.run.options import RunOptions
from raykueue.run.wire import Message, Peer, Server

SOCKET = OWNER_SOCKET


class Owner:
    """Serves the test processes of one run, from a thread of its own."""

    def __init__(
        self, options: RunOptions, folder: Path, journals: Path, log: Log, on_failure: Callable[[InfraError], None]
    ) -> None:
        """Sockets and the whole journal are in `folder`; tests save theirs in `journals`.

        `on_failure` is called, from another thread, when the run can't go on: a component died.
        """
        self.socket = folder / SOCKET
        self.run: LiveRun | None = None
        self.failure: InfraError | None = None
        self._options = options
        self._folder = folder
        self._journals = journals
        self._log = log
        self._on_failure = on_failure
        self._loop = asyncio.new_event_loop()
        self._leases = Leases(self._change_settings)
        self._opening: asyncio.Task[LiveRun] | None = None
        self._sessions: set[Peer] = set()
        """Test processes, which are told when it makes no sense to wait for anything any more."""
        self._server = Server(self.socket, self._handle, self._gone)
        self._closing: asyncio.Event = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._serve, name="raykueue-owner", daemon=True)
        self._listening = threading.Event()
        self._deaf: OSError | None = None

    def start(self) -> None:
        """Begins to listen.

        Raises:
            InfraError: it can't.
        """
        self._thread.start()
        self._listening.wait()
        if self._deaf is not None:
            self._thread.join()
            raise InfraError(f"the owner can't listen at {self.socket}: {self._deaf}") from self._deaf

    def close(self) -> None:
        """Ends recorder and cluster, if there are any, and stops listening. A start that is under way is given up."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join()
        if self.run is not None:
            self.run.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve_until_closed())
        finally:
            self._loop.close()

    async def _serve_until_closed(self) -> None:
        try:
            await self._server.start()
        except OSError as error:
            self._deaf = error
            return
        finally:
            self._listening.set()
        await self._closing.wait()
        await self._server.stop()
        # A cluster that is just being brought up must be there to be ended, and a change of settings must be over.
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)

    async def _handle(self, peer: Peer, do: str, arguments: Message) -> dict[str, Any]:
        match do:
            case "cluster":
                self._sessions.add(peer)
                return {**(await self._opened()).describe(), "journals": str(self._journals)}
            case "lease":
                await self._opened()
                settings = Settings(**arguments.get("settings", {}))
                await self._leases.take(peer, settings, alone=bool(arguments.get("alone")))
            case "release":
                await self._leases.release(peer)
            case "kill" | "start_component":
                cluster = (await self._opened()).live.cluster
                if not isinstance(cluster, Faults):
                    raise UsageError(f"the components of cluster {cluster.name} are not ours to {do}")
                await asyncio.to_thread(getattr(cluster, do), arguments["component"])
            case "stop_node" | "start_node" | "restart_kubelet":
                cluster = (await self._opened()).live.cluster
                if not isinstance(cluster, NodeFaults):
                    raise UsageError(f"the nodes of cluster {cluster.name} are not ours: no {do}")
                await asyncio.to_thread(getattr(cluster, do), arguments["node"])
            case other:
                raise InfraError(f"the owner does not know the request {other!r}")
        return {}

    def _gone(self, peer: Peer) -> None:
        self._sessions.discard(peer)
        task = self._loop.create_task(self._leases.release(peer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _opened(self) -> LiveRun:
        if self.failure is not None:
            raise self.failure
        if self._closing.is_set():
            raise ClusterError("the run is ending")
        if self._opening is None:
            self._opening = self._loop.create_task(self._open())
        # Whoever asked first may die meanwhile: the start goes on for the others, and no second one begins.
        return await asyncio.shield(self._opening)

    async def _open(self) -> LiveRun:
        try:
            self.run = await asyncio.to_thread(
                LiveRun.open, self._options, self._folder, self._say, self._component_died
            )
        except InfraError as error:
            self.failure = error
            raise
        return self.run

    def _say(self, line: str) -> None:
        # Progress of a start, told every 15 s at least while something is built: the way out of it, too.
        if self._closing.is_set():
            raise ClusterError("the run was ended while its cluster was being started")
        if line:  # an empty one only asks whether to go on
            self._log(line)

    async def _change_settings(self, settings: Settings) -> None:
        assert self.run is not None
        await asyncio.to_thread(self.run.live.change, settings, self.run.recording)

    def _component_died(self, error: ComponentDied) -> None:
        self.failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: everything ends anyway
            self._loop.call_soon_threadsafe(self._tell_death, str(error))
        self._on_failure(error)

    def _tell_death(self, error: str) -> None:
        line = json.dumps({"push": "died", "error": error})
        for peer in self._sessions:
            peer.push(line)
