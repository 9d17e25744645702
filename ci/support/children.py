"""Running a command to its end: an interrupt reaches it once, and it may take its time to clean up."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

INTERRUPTED = 2
INFRA = 3


def run(command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None) -> int:
    """Runs the command with our own input and output, and returns its exit code.

    It is in a session of its own, so that ctrl-C on a terminal does not reach it past us; SIGINT and SIGTERM are passed
    on to it. One that was ended by SIGINT or SIGTERM counts as interrupted, by another signal as infrastructure.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )

    def pass_on(number: int, _: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if code in (-signal.SIGINT, -signal.SIGTERM):
        return INTERRUPTED
    return INFRA if code < 0 else code
