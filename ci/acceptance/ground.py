"""Where checks are carried out: a clone, a state directory of its own, and whatever of ours runs or is left there."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import psutil

Env: TypeAlias = Mapping[str, str | Path]
PATIENCE = 900.0
"""Seconds for one command, unless said otherwise: a cold `make test` on a busy machine."""
GONE_SECONDS = 10.0
"""For processes to be gone once whoever owned them is."""
_FOREIGN = ("KUBECONFIG", "PYTEST_ADDOPTS", "PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
"""Variables of whoever runs this that would change what is tried."""


class Miss(AssertionError):
    """Something is not as promised."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    text: str
    """What it printed, on both streams."""
    seconds: float

    @property
    def last_line(self) -> str:
        """Of what it printed."""
        lines = self.text.strip().splitlines()
        return lines[-1] if lines else ""


@dataclass
class Ground:
    """One clone."""

    root: Path
    state: Path
    temporary: Path
    """TMPDIR of everything that is tried."""
    log: Path
    """What every command printed."""
    environment: dict[str, str] = field(default_factory=dict)
    started: list[Running] = field(default_factory=list)
    """Commands of the present check whose end nobody has waited for."""
    failed: str = ""
    """The command that was not as promised, and what it printed."""

    def __post_init__(self) -> None:
        self.state.mkdir(parents=True, exist_ok=True)
        self.temporary.mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        path = f"{self.root / '.venv' / 'bin'}{os.pathsep}{kept['PATH']}"
        self.environment = {**kept, "PATH": path, "RAYKUEUE_STATE": str(self.state), "TMPDIR": str(self.temporary)}

    def run(
        self, *command: str, code: int = 0, says: str = "", patience: float = PATIENCE, env: Env | None = None
    ) -> Outcome:
        """Runs a command in the clone to its end, with `env` on top of its environment.

        Raises:
            Miss: it ended with another exit code than `code`, or did not say `says`, or took too long.
        """
        return self.finish(self.start(*command, env=env), code, says, patience)

    def start(self, *command: str, env: Env | None = None) -> Running:
        """Starts a command as a terminal would: in a process group of its own."""
        environment = {**self.environment, **{key: str(value) for key, value in (env or {}).items()}}
        self.started.append(Running(command, self.root, environment))
        return self.started[-1]

    def finish(self, running: Running, code: int, says: str = "", patience: float = PATIENCE) -> Outcome:
        """Waits for a command's end, and holds it against what was promised.

        Raises:
            Miss: as `run`.
        """
        outcome = running.wait(patience)
        self.started.remove(running)
        shown = f"$ {running.shown}\n{outcome.text}\n[exit code {outcome.code}, {outcome.seconds:.1f} s]\n"
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{shown}\n")
        self.failed = self.failed or (shown if outcome.code != code or says not in outcome.text else "")
        if outcome.code != code:
            raise Miss(f"`{running.shown}` ended with code {outcome.code}, expected {code}")
        if says not in outcome.text:
            raise Miss(f"`{running.shown}` did not say {says!r}")
        return outcome

    def processes(self) -> list[psutil.Process]:
        """Those that belong to this ground: by its state directory in their environment, arguments or folder."""
        found = []
        for process in psutil.process_iter():
            try:
                with process.oneshot():
                    if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE and self._owns(process):
                        found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found

    def _owns(self, process: psutil.Process) -> bool:
        state = str(self.state)
        told = [*process.cmdline(), process.cwd(), process.environ().get("RAYKUEUE_STATE", "")]
        return any(state in text for text in told)

    def left(self) -> list[str]:
        """What is left now that nothing should be: processes, folders of clusters and runs, temporary files."""
        until(lambda: not self.processes(), GONE_SECONDS)
        found = [f"process {process.pid} ({_name(process)})" for process in self.processes()]
        for kind in ("clusters", "runs"):
            found += [f"{kind}/{path.name}" for path in sorted(self.state.glob(f"{kind}/*"))]
        ours = [path for path in sorted(self.temporary.iterdir()) if not path.name.startswith("pytest-of-")]
        return found + [f"temporary {path.name}" for path in ours]

    def clean(self) -> None:
        """Ends and removes what a check that missed has left, so that the next one starts afresh."""
        for running in self.started:
            running.kill()
            shown = f"$ {running.shown}\n{running.text}\n[killed]\n"
            self.failed = self.failed or shown
            with self.log.open("a", encoding="utf-8") as log:
                log.write(f"{shown}\n")
        self.started.clear()
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended by itself
                process.kill()
        subprocess.run(["raykueue", "status"], env=self.environment, capture_output=True, check=False)

    def recording(self) -> bool:
        """Whether some run has a recorder that takes connections, so that its tests can begin."""
        return bool(list(self.state.glob("runs/*/recorder.sock")))

    @contextmanager
    def up(self, *options: str) -> Iterator[None]:
        """A cluster that is left up, and ended afterwards."""
        self.run("raykueue", "up", *options)
        try:
            yield
        finally:
            self.run("raykueue", "down", "--force")


class Running:
    """A command that has been started."""

    def __init__(self, command: tuple[str, ...], cwd: Path, environment: Mapping[str, str]) -> None:
        self.shown = " ".join(command)
        self._began = time.monotonic()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        self.pid = self._process.pid

    @property
    def text(self) -> str:
        """What it has printed so far."""
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode(errors="replace")

    @property
    def ended(self) -> bool:
        """Whether it has."""
        return self._process.poll() is not None

    def send(self, number: signal.Signals) -> None:
        """To the process alone."""
        self._process.send_signal(number)

    def press_ctrl_c(self) -> None:
        """To the whole group, as a terminal does."""
        os.killpg(self.pid, signal.SIGINT)

    def wait(self, patience: float) -> Outcome:
        """For its end.

        Raises:
            Miss: it took longer than `patience` seconds, and was killed.
        """
        try:
            code = self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Miss(f"`{self.shown}` was not over after {patience:.0f} s; it said:\n{self._end()}") from None
        return Outcome(code, self.text, time.monotonic() - self._began)

    def until(self, reached: Callable[[], bool], what: str, seconds: float = 240.0) -> None:
        """Waits until something is so while this runs.

        Raises:
            Miss: it ended first, or that took too long.
        """
        if not until(lambda: reached() or self.ended, seconds) or self.ended:
            self.kill()
            raise Miss(f"`{self.shown}` did not get as far as this: {what}; it said:\n{self._end()}")

    def kill(self) -> None:
        """With its whole group, if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()

    def _end(self) -> str:
        return self.text[-2000:]


def until(reached: Callable[[], bool], seconds: float) -> bool:
    """Whether it was so within that time. Nothing announces what other processes do, so it is looked at often."""
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def expect(true: object, otherwise: str) -> None:
    """Raises Miss with `otherwise` unless it is true."""
    if not true:
        raise Miss(otherwise)


def _name(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:80]
    except psutil.Error:
        return "ended just now"
