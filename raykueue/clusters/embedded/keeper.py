"""The keeper: the one process that starts, watches and ends the processes of an embedded cluster.

It outlives whoever asked for the cluster just long enough to clean up: its standard input is a pipe from its owner, and
when that ends (the owner finished, crashed or was killed) every component ends, unless the owner detached it first
(`raykueue up`). If the keeper itself is killed, `state.json` names what is left, with start times, so that the next
start can end exactly those processes.

Requests are JSON lines over a Unix socket in the cluster's folder:
    {"do": "start", "name", "argv", "env", "cwd"} -> {"pid"}
    {"do": "kill", "name", "signal"}              -> {} once the process is gone
    {"do": "status"}                              -> {"components": {name: {"pid", "alive", "code"}}}
    {"do": "detach"} | {"do": "stop"}             -> {}
    {"do": "watch"}                               -> a line {"died": name, "code"} per unexpected end, earlier ones too
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil

SOCKET = "keeper.sock"
STOP_SECONDS = 5.0
"""How long a component may take to end by itself. Nothing of a test cluster is worth waiting for longer."""
LINE_BYTES = 4 << 20
"""A request to start something carries a whole environment, for which Linux allows 2 MiB."""


class Keeper:
    """Keeps the components of the cluster in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._started: dict[str, float] = {}
        self._expected: set[str] = set()
        self._died: dict[str, int] = {}
        """Exit codes of those that ended by themselves and were not started again."""
        self._watchers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._detached = False
        self._stopping = asyncio.Event()
        self._starting = asyncio.Lock()

    async def run(self) -> None:
        """Serves until told to stop, or until the owner is gone."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stopping.set)
        loop.add_signal_handler(signal.SIGINT, lambda: None)  # a ctrl-C is for the owner, which then stops us
        # From within the folder, whose path may be longer than a Unix socket's address allows.
        os.chdir(self._folder)
        socket = Path(SOCKET)
        server = await asyncio.start_unix_server(self._serve, path=socket, limit=LINE_BYTES)
        socket.chmod(0o600)  # nobody else can come through the folder, which has 0700
        self._write_state()
        self._spawn(self._watch_owner())
        print("ready", flush=True)  # noqa: T201 - the protocol with the owner
        await self._stopping.wait()
        await self._stop_all()
        server.close()
        socket.unlink(missing_ok=True)

    async def _watch_owner(self) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        await reader.read()
        if not self._detached:
            self._stopping.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                request = json.loads(line)
                if request["do"] == "watch":
                    for name, code in self._died.items():
                        _tell_death(writer, name, code)
                    self._watchers.add(writer)
                    continue
                try:
                    answer: dict[str, Any] = await self._answer(request)
                except (OSError, ValueError) as error:
                    answer = {"error": f"{request.get('name', request['do'])}: {error}"}
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client is gone, or everything is over and this task ends here
        finally:
            self._watchers.discard(writer)
            writer.close()

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["do"]:
            case "start":
                return {"pid": await self._start(request)}
            case "kill":
                await self._end(request["name"], signal.Signals(request.get("signal", signal.SIGKILL)))
            case "status":
                return {"components": {name: _describe(process) for name, process in self._processes.items()}}
            case "detach":
                self._detached = True
                self._write_state()
            case "stop":
                self._stopping.set()
            case other:
                return {"error": f"unknown request {other!r}"}
        return {}

    async def _start(self, request: dict[str, Any]) -> int:
        name = request["name"]
        async with self._starting:  # so that none is started behind the back of _stop_all
            if self._stopping.is_set():
                raise ValueError("everything is being stopped")
            if name in self._processes and self._processes[name].returncode is None:
                raise ValueError(f"it runs already, as pid {self._processes[name].pid}; end it first")
            with (self._folder / f"{name}.log").open("ab") as log:
                process = await asyncio.create_subprocess_exec(
                    *request["argv"],
                    stdin=asyncio.subprocess.PIPE,  # never written to: ours end when it ends, with the keeper
                    stdout=log,
                    stderr=asyncio.subprocess.STDOUT,
                    env=request["env"],
                    cwd=request["cwd"],
                    start_new_session=True,
                )
            self._processes.pop(name, None)  # to the end of the order, now that it is the youngest
            self._processes[name] = process
            self._expected.discard(name)
            self._died.pop(name, None)
        with contextlib.suppress(psutil.Error):
            self._started[name] = psutil.Process(process.pid).create_time()
        self._write_state()
        self._spawn(self._watch(name, process))
        return process.pid

    async def _watch(self, name: str, process: asyncio.subprocess.Process) -> None:
        code = await process.wait()
        self._write_state()
        if name in self._expected or self._stopping.is_set():
            return
        self._died[name] = code
        for writer in self._watchers:
            _tell_death(writer, name, code)

    async def _end(self, name: str, how: signal.Signals) -> None:
        if name not in self._processes:
            raise ValueError(f"it was never started; there are: {', '.join(self._processes) or 'none'}")
        process = self._processes[name]
        self._expected.add(name)
        if process.returncode is None:
            _signal_group(process.pid, how)
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            _signal_group(process.pid, signal.SIGKILL)
            await process.wait()

    async def _stop_all(self) -> None:
        # Clients before servers, so that no log ends in a page of refused connections; etcd last, by its own will.
        async with self._starting:
            names = list(reversed(self._processes))
        names.sort(key=lambda name: name == "etcd")
        for name in names:
            if name != "etcd" and self._processes[name].returncode is None:
                self._expected.add(name)
                _signal_group(self._processes[name].pid, signal.SIGKILL)
        for name in names:
            await self._end(name, signal.SIGTERM)
        (self._folder / "state.json").unlink(missing_ok=True)

    def _write_state(self) -> None:
        if self._stopping.is_set():
            return
        mine = psutil.Process()
        state = {
            "keeper": {"pid": mine.pid, "started": mine.create_time()},
            "detached": self._detached,
            "components": {
                name: {"pid": process.pid, "started": self._started.get(name, 0.0)}
                for name, process in self._processes.items()
                if process.returncode is None
            },
        }
        partial = self._folder / "state.json.partial"
        partial.write_text(json.dumps(state, indent=1))
        partial.replace(self._folder / "state.json")

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _tell_death(writer: asyncio.StreamWriter, name: str, code: int) -> None:
    # Not drained: a watcher that doesn't read holds nobody up, and there are few deaths.
    writer.write(json.dumps({"died": name, "code": code}).encode() + b"\n")


def _describe(process: asyncio.subprocess.Process) -> dict[str, Any]:
    return {"pid": process.pid, "alive": process.returncode is None, "code": process.returncode}


def _signal_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


if __name__ == "__main__":
    asyncio.run(Keeper(Path(sys.argv[1])).run())
