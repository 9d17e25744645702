"""Runs the pairs of one shard: each in its own process and cluster, with its own report folder.

Whatever becomes of one pair, the next one runs. A request to end is passed on to the processes that run, which end
their tests and clusters and write their reports; only those that don't are killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path

from raykueue.errors import EXIT_INFRA, EXIT_INTERRUPTED
from raykueue.matrix.matrix_file import MatrixFile, Ran
from raykueue.matrix.outcome import Outcome, outcome, settled
from raykueue.matrix.selection import pair_id
from raykueue.model.versions import Pair
from raykueue.report.errors import ReportError
from raykueue.report.files import LATEST, RUN

OUTPUT = "output.log"
"""In a pair's folder: all that its processes printed."""
PAIR_SECONDS: Mapping[str, float] = {"smoke": 15 * 60.0, "core": 60 * 60.0, "full": 4 * 3600.0}
"""By profile: many times what a pair takes on two busy cores. Without it one that hangs would stop the others."""
BUILD_SECONDS = 2 * 3600.0
"""Ten times what a pair's binaries take on two cores."""
GRACE_SECONDS = 90.0
"""For a run to end its tests and its cluster and to write its report, once it was asked to."""


@dataclass(frozen=True, slots=True)
class Commands:
    """What is run for a pair."""

    build: Callable[[Pair], Sequence[str]]
    test: Callable[[Pair, Path], Sequence[str]]
    """For a pair, and the folder in which its report is to be."""
    cwd: Path


@dataclass
class Runner:
    """One shard of a matrix, from its first pair to its last."""

    matrix: MatrixFile
    commands: Commands
    tell: Callable[[Outcome, int, int], None]
    """Called with each outcome as soon as it is known, how many there are by now, and of how many."""
    jobs: int = 1
    pair_seconds: float = PAIR_SECONDS["core"]
    grace_seconds: float = GRACE_SECONDS
    _children: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _ending: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _building: threading.Lock = field(default_factory=threading.Lock)
    """Go uses every core for one build, so a second one at the same time would only be in its way."""

    def run(self) -> MatrixFile:
        """Runs what has no settled outcome yet, and returns what is known then.

        What goes wrong with one pair is that pair's. Only if nobody could know afterwards what ran, it ends at once.

        Raises:
            ReportError: matrix.json can't be written.
            OSError: an outcome can't be told.
        """
        self.matrix.save()
        todo = [pair for pair in self.matrix.mine if not settled(self._outcome(pair))]
        with ThreadPoolExecutor(self.jobs, thread_name_prefix="raykueue-pair") as pool:
            futures = [pool.submit(self._one, pair) for pair in todo]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException as error:
                with self._lock:
                    self._ending = True
                    self.matrix = replace(self.matrix, interrupted=isinstance(error, KeyboardInterrupt))
                for future in futures:
                    future.cancel()
                self._end_children()
                if not isinstance(error, KeyboardInterrupt):
                    raise
        self.matrix.save()
        return self.matrix

    def _one(self, pair: Pair) -> None:
        if self._ending:
            return
        folder = self.matrix.folder / "pairs" / pair_id(pair)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            ran = self._ran(pair, folder)
        except (OSError, ReportError) as error:  # its own trouble: the next one may do
            ran = Ran(EXIT_INFRA, f"it could not be run: {' '.join(str(error).split())}")
        with self._lock:
            ran = ran.again(self.matrix.results.get(pair_id(pair)))
            self.matrix = replace(self.matrix, results={**self.matrix.results, pair_id(pair): ran})
            self.matrix.save()
            self.tell(self._outcome(pair), len(self.matrix.results), len(self.matrix.mine))

    def _ran(self, pair: Pair, folder: Path) -> Ran:
        output = folder / OUTPUT
        began = time.monotonic()
        with self._building:
            if self._ending:
                return Ran(EXIT_INTERRUPTED, "it was interrupted before it began")
            building = time.monotonic()
            code, late = self._call(self.commands.build(pair), output, BUILD_SECONDS)
        built = time.monotonic() - building
        if code != 0 or late:
            ended = "took too long" if late else "failed"
            interrupted = code == EXIT_INTERRUPTED and not late
            why = "" if interrupted else f"the build of its binaries {ended}: {_last_line(output)}"
            return Ran(code, why, build_seconds=time.monotonic() - began)
        before = set(_reports(folder))
        testing = time.monotonic()
        code, late = self._call(self.commands.test(pair, folder), output, self.pair_seconds)
        new = sorted(set(_reports(folder)) - before)
        report = str((folder / new[-1]).relative_to(self.matrix.folder)) if new else ""
        reason = ""
        if late:
            reason = f"it was not over after {self.pair_seconds / 60:.0f} minutes, and was ended"
        elif not new and code != EXIT_INTERRUPTED:
            how = f"signal {-code}" if code < 0 else f"code {code}"
            reason = f"its process ended with {how} and left no report: {_last_line(output)}"
        return Ran(code, reason, report, built, time.monotonic() - testing)

    def _call(self, command: Sequence[str], output: Path, seconds: float) -> tuple[int, bool]:
        """(exit code, whether it took too long and was ended) of a command, whose output goes to the end of a file."""
        with output.open("ab") as file:
            child = subprocess.Popen(
                command,
                cwd=self.commands.cwd,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # ctrl-C on a terminal comes by us, once
            )
        with self._lock:
            self._children.add(child)
            ending = self._ending
        try:
            if ending:  # nobody else knew of it when all were asked
                return self._interrupted(self._end(child)), False
            return self._interrupted(child.wait(seconds)), False
        except subprocess.TimeoutExpired:
            return self._end(child), True
        finally:
            with self._lock:
                self._children.discard(child)

    def _interrupted(self, code: int) -> int:
        """A process that a signal ended while all are being ended was interrupted, however early it was."""
        return EXIT_INTERRUPTED if code < 0 and self._ending else code

    def _end_children(self) -> None:
        """Asks all of them, and waits for each; a second ctrl-C ends the patience."""
        with self._lock:
            children = list(self._children)
        for child in children:
            child.send_signal(signal.SIGTERM)
        try:
            deadline = time.monotonic() + self.grace_seconds
            for child in children:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(max(0.0, deadline - time.monotonic()))
        finally:
            for child in children:
                _kill(child)

    def _end(self, child: subprocess.Popen[bytes]) -> int:
        child.send_signal(signal.SIGTERM)
        try:
            return child.wait(self.grace_seconds)
        except subprocess.TimeoutExpired:
            _kill(child)
            return child.wait()

    def _outcome(self, pair: Pair) -> Outcome:
        return outcome(pair, self.matrix.results.get(pair_id(pair)), self.matrix.folder, self.matrix.plan)


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


def _reports(folder: Path) -> list[str]:
    """Names of the finished reports in it: they begin with the time, so they sort by it."""
    return [path.name for path in folder.iterdir() if path.name != LATEST and (path / RUN).is_file()]


def _last_line(output: Path) -> str:
    try:
        lines = [line.strip() for line in output.read_text(errors="replace").splitlines() if line.strip()]
    except OSError as error:
        raise ReportError(f"{output}: it can't be read ({error})") from error
    return lines[-1][:300] if lines else "it said nothing"
