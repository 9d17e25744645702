"""Running a command to its end: an interrupt reaches it once, and it may take its time to clean up."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

INTERRUPTED = 2
INFRA = 3
_ENDING = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    """Its own exit code; if a signal ended it, INTERRUPTED for SIGINT and SIGTERM, INFRA for others."""
    interrupted: bool
    """It was asked to end, by a signal to us or to itself."""


def run(command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None) -> Ended:
    """Runs the command with our own output and, on top of ours, its own environment.

    It is in a session of its own, so that ctrl-C on a terminal does not reach it past us; SIGINT and SIGTERM are passed
    on to it.
    """
    asked: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def pass_on(number: int, _: FrameType | None) -> None:
        asked.append(number)
        if process is not None:
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in _ENDING}
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        if asked:  # before there was anybody to pass it on to
            process.send_signal(asked[0])
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    ended_by_request = -code in _ENDING
    if code < 0:
        code = INTERRUPTED if ended_by_request else INFRA
    return Ended(code, bool(asked) or ended_by_request)
