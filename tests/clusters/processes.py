"""Processes that do no harm, and waiting for what they do."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import psutil


def sleeper() -> list[str]:
    """The command line of one that does nothing for much longer than any test."""
    return ["sleep", "300"]


def ends_with(words: str, code: int) -> list[str]:
    """The command line of one that says something and ends at once."""
    return [sys.executable, "-S", "-c", f"print({words!r}); raise SystemExit({code})"]


def gone(process: psutil.Process) -> bool:
    """It runs no more; a zombie doesn't."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def until(reached: Callable[[], bool], seconds: float = 10.0) -> None:
    """Returns once it is so; for what another process does and nobody announces."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not reached():
        assert time.monotonic() < deadline, "not reached in time"
        pause.wait(0.01)
