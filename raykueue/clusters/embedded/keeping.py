"""The owner's side of the keeper: start one, talk to it, hear of deaths, find it again."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from raykueue.clusters.embedded.keeper import SOCKET
from raykueue.errors import ClusterError, ComponentDied

REQUEST_SECONDS = 15.0
"""Longer than the keeper takes to end a component that won't end by itself."""
START_SECONDS = 30.0
"""Of the keeper itself, an interpreter that imports little: under 1 s on a busy machine."""
_SUN_PATH = 100
"""A Unix socket's path has room for 104 bytes on macOS, 108 on Linux."""


class Keeping:
    """A connection to the keeper of the cluster in `folder`."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes] | None = None) -> None:
        self.folder = folder
        self._process = process
        self._lock = threading.Lock()
        self._watches: list[tuple[socket.socket, threading.Thread]] = []
        self._ending = False
        self._socket = _connect(folder)
        self._file = self._socket.makefile("rwb")

    @classmethod
    def launch(cls, folder: Path) -> Keeping:
        """Starts a keeper that lives as long as this process, or until it is detached.

        Raises:
            ClusterError: it ended, or was not ready in time; nothing of it is left.
        """
        with (folder / "keeper.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "raykueue.clusters.embedded.keeper", str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        try:
            if not _says_ready(process):
                raise ClusterError(f"the keeper of {folder.name} did not start:\n{tail(folder / 'keeper.log')}")
            return cls(folder, process)
        except BaseException:
            _end(process)
            raise

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> int:
        """Starts a component and returns its pid."""
        answer = self._ask({"do": "start", "name": name, "argv": list(argv), "env": dict(env), "cwd": str(cwd)})
        return int(answer["pid"])

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Ends a component and waits until it is gone."""
        self._ask({"do": "kill", "name": name, "signal": int(how)})

    def status(self) -> dict[str, dict[str, Any]]:
        """For every component ever started: pid, alive, code."""
        return dict(self._ask({"do": "status"})["components"])

    def check(self, name: str) -> None:
        """Raises ComponentDied, with the last lines of its log, if the component has ended."""
        about = self.status().get(name)
        if about is None or not about["alive"]:
            raise died(self.folder, name, None if about is None else about["code"])

    def detach(self) -> None:
        """From now on the cluster outlives this process."""
        self._ask({"do": "detach"})

    def watch(self, on_death: Callable[[ComponentDied], None]) -> None:
        """Calls `on_death`, from a thread of its own, whenever a component ends that nobody ended, or the keeper."""
        connection = _connect(self.folder)
        connection.settimeout(None)  # it lasts as long as the cluster
        connection.sendall(b'{"do": "watch"}\n')

        def listen() -> None:
            with contextlib.suppress(OSError), connection.makefile("rb") as lines:
                for line in lines:
                    about = json.loads(line)
                    on_death(died(self.folder, about["died"], about["code"]))
            if not self._ending:
                log = tail(self.folder / "keeper.log")
                on_death(ComponentDied(f"the keeper of cluster {self.folder.name} ended by itself; its log:\n{log}"))

        thread = threading.Thread(target=listen, name="keeper-watch", daemon=True)
        self._watches.append((connection, thread))
        thread.start()

    def stop(self) -> None:
        """Ends every component, then the keeper; returns when all are gone. Does nothing the second time."""
        self._ending = True
        with contextlib.suppress(ClusterError):
            self._ask({"do": "stop"})
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._file.read()  # the keeper closes the connection when it is done
        self.close()
        if self._process is not None:
            _end(self._process)

    def close(self) -> None:
        """Lets go of the connections only."""
        self._ending = True
        with contextlib.suppress(OSError):
            self._file.close()
        self._socket.close()
        for connection, thread in self._watches:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            if thread is not threading.current_thread():
                thread.join(REQUEST_SECONDS)
            connection.close()
        self._watches.clear()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            try:
                self._file.write(json.dumps(request).encode() + b"\n")
                self._file.flush()
                line = self._file.readline()
            except (OSError, ValueError) as error:  # ValueError: it was let go of
                raise ClusterError(f"the keeper of {self.folder.name} does not answer: {error}") from error
        if not line:
            raise ClusterError(f"the keeper of {self.folder.name} is gone:\n{tail(self.folder / 'keeper.log')}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ClusterError(f"cluster {self.folder.name}: {answer['error']}")
        return answer


def died(folder: Path, name: str, code: int | None) -> ComponentDied:
    """The error that says how a component ended, in its own last words."""
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return ComponentDied(
        f"{name} of cluster {folder.name} ended by itself ({how}); the end of {folder / name}.log:\n"
        f"{tail(folder / f'{name}.log')}"
    )


def tail(path: Path, lines: int = 12, width: int = 400) -> str:
    """The last lines of a log, indented, each cut to `width` characters."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 64 * 1024))
            text = file.read().decode(errors="replace")
    except OSError:
        return "    (no log)"
    return "\n".join(f"    {line[:width]}" for line in text.splitlines()[-lines:]) or "    (empty log)"


def _says_ready(process: subprocess.Popen[bytes]) -> bool:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return bool(selector.select(START_SECONDS)) and process.stdout.readline() == b"ready\n"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a keeper of ours: by the end of its input, and by force if it takes no notice."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(REQUEST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # whoever calls ends what it kept: the cluster's folder still names it
        process.wait()
    finally:
        process.stdout.close()


@contextlib.contextmanager
def _address(folder: Path) -> Iterator[str]:
    """The socket's path, or a short name for it."""
    path = folder / SOCKET
    if len(os.fsencode(path)) <= _SUN_PATH or not Path("/proc/self/fd").is_dir():
        yield str(path)
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{opened}/{SOCKET}"
    finally:
        os.close(opened)


def _connect(folder: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(REQUEST_SECONDS)
    try:
        with _address(folder) as address:
            connection.connect(address)
    except OSError as error:
        connection.close()
        raise ClusterError(
            f"cluster {folder.name} has no keeper any more ({error}); `raykueue down {folder.name}`"
        ) from error
    return connection
