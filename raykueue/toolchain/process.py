"""Runs one command to its end, in a process group of its own that never outlives the caller's wait."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TICK = 0.5
"""Seconds between two calls of `tick`."""


@dataclass(frozen=True, slots=True)
class Output:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Both streams, the one with the reasons last."""
        return f"{self.out}\n{self.err}".strip()


def run(
    arguments: Sequence[str | Path],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    timeout: float,
    tick: Callable[[], None],
) -> Output:
    """Runs the command, calling `tick` twice a second; if that raises (an interrupt above all), or time is up, the
    command's whole group is ended first.

    Raises:
        OSError: it can't be started.
        subprocess.TimeoutExpired: it took longer than `timeout` seconds, and was ended.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            arguments,
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            process_group=0,
        )
        deadline = time.monotonic() + timeout
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(TICK)
                    break
                tick()
                if time.monotonic() > deadline:
                    raise subprocess.TimeoutExpired([str(argument) for argument in arguments], timeout)
        finally:
            if process.returncode is None:
                # Go and pip write their caches so that a sudden end does no harm; there is nothing to ask for politely.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        streams = []
        for stream in (out, err):
            stream.seek(0)
            streams.append(stream.read().decode(errors="replace"))
    return Output(process.returncode, *streams)
