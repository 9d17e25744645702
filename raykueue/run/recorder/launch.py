"""Starts the recorder as a child of the run's owner, and ends it."""

from __future__ import annotations

import contextlib
import selectors
import subprocess
import sys
from collections import deque
from pathlib import Path

from raykueue.errors import RecorderError
from raykueue.run.recorder.config import LOG, SOCKET, RecorderConfig

START_S = 60.0
STOP_S = 15.0
TAIL_LINES = 20


class RecorderProcess:
    """A running recorder. It also ends when the owner dies, since its input ends then."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.folder = folder
        self.socket = folder / SOCKET

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still records. If not, the run can't be judged."""
        return self._process.poll() is None

    def stop(self, timeout_s: float = STOP_S) -> int:
        """Ends it: last barrier, sentinels deleted, journal flushed. Returns its exit code; 0 means clean.

        Raises:
            RecorderError: it did not end in time, and was killed.
        """
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise RecorderError(
                f"recorder {self.pid}: still there {timeout_s:g} s after its input ended; killed.\n"
                + log_tail(self.folder)
            ) from None
        finally:
            if self._process.stdout is not None:
                self._process.stdout.close()


def start_recorder(folder: Path, config: RecorderConfig, timeout_s: float = START_S) -> RecorderProcess:
    """Writes the configuration into the run's folder, starts the recorder and waits until it is ready.

    Raises:
        RecorderError: it ended, or was not ready in time; the message has the last lines of its log.
    """
    config.save(folder)
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "raykueue.run.recorder", "--folder", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    recorder = RecorderProcess(folder, process)
    assert process.stdout is not None
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if selector.select(timeout_s) and process.stdout.readline() == b"ready\n":
                return recorder
    except BaseException:
        recorder.stop()
        raise
    ended = process.poll() is not None or not _still_runs(process)
    with contextlib.suppress(RecorderError):
        recorder.stop()
    why = f"it ended with code {process.returncode}" if ended else f"it was not ready within {timeout_s:g} s"
    raise RecorderError(f"the recorder did not start: {why}.\n{log_tail(folder)}")


def log_tail(folder: Path) -> str:
    """The last lines that the recorder wrote to its log; empty without a log."""
    try:
        with (folder / LOG).open(encoding="utf-8", errors="replace") as log:
            return "".join(deque(log, TAIL_LINES)).rstrip()
    except OSError:
        return ""


def _still_runs(process: subprocess.Popen[bytes]) -> bool:
    """Its output may have ended a moment before the process."""
    try:
        process.wait(1.0)
    except subprocess.TimeoutExpired:
        return True
    return False
