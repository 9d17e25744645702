"""The owner's side of the keeper: start one, talk to it, hear of deaths, find it again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from raykueue.errors import ClusterError, ComponentDied

REQUEST_SECONDS = 15.0
"""Longer than the keeper takes to end a component that won't end by itself."""


class Keeping:
    """A connection to the keeper of the cluster in `folder`."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes] | None = None) -> None:
        self.folder = folder
        self._process = process
        self._lock = threading.Lock()
        self._socket = _connect(folder)
        self._file = self._socket.makefile("rwb")

    @classmethod
    def launch(cls, folder: Path) -> Keeping:
        """Starts a keeper that lives as long as this process, or until it is detached."""
        with (folder / "keeper.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "raykueue.clusters.embedded.keeper", str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert process.stdout is not None
        if process.stdout.readline().strip() != b"ready":
            process.kill()
            raise ClusterError(f"the keeper of {folder.name} did not start:\n{tail(folder / 'keeper.log')}")
        return cls(folder, process)

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
        """Calls `on_death`, from a thread of its own, whenever a component ends that nobody ended."""
        connection = _connect(self.folder)
        connection.settimeout(None)  # it lasts as long as the cluster
        connection.sendall(b'{"do": "watch"}\n')

        def listen() -> None:
            with connection, connection.makefile("rb") as lines:
                for line in lines:
                    about = json.loads(line)
                    on_death(died(self.folder, about["died"], about["code"]))

        threading.Thread(target=listen, name="keeper-watch", daemon=True).start()

    def stop(self) -> None:
        """Ends every component, then the keeper; returns when all are gone."""
        with contextlib.suppress(ClusterError):
            self._ask({"do": "stop"})
        with contextlib.suppress(OSError):
            self._file.read()  # the keeper closes the connection when it is done
        self.close()
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait(REQUEST_SECONDS)
            self._process.stdout.close()

    def close(self) -> None:
        """Lets go of the connection only."""
        with contextlib.suppress(OSError):
            self._file.close()
        self._socket.close()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            try:
                self._file.write(json.dumps(request).encode() + b"\n")
                self._file.flush()
                line = self._file.readline()
            except OSError as error:
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


def _connect(folder: Path) -> socket.socket:
    # A Unix socket's path may have 104 characters at most, so it is reached from within its folder.
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(REQUEST_SECONDS)
    try:
        connection.connect(str(folder / "keeper.sock"))
    except OSError as error:
        connection.close()
        raise ClusterError(
            f"cluster {folder.name} has no keeper any more ({error}); `raykueue down {folder.name}`"
        ) from error
    return connection
