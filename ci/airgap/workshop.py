"""Makes parts that are missing in the cache, one after the other, and says how far it is."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raykueue.errors import ToolchainError
from raykueue.model.versions import Pair, Versions
from raykueue.toolchain import recipe
from raykueue.toolchain.builder import Toolchain, to_stderr
from raykueue.toolchain.golang import Go, find_go
from raykueue.toolchain.interrupt import Interrupts
from raykueue.toolchain.process import run
from raykueue.toolchain.progress import Log, Progress
from raykueue.toolchain.store import Artifact, Store, cache_root

RECIPE = 1
"""Raise it when the way in which parts are made changes: everything cached is then made anew."""
_LINES = 12
"""Of what a failed command printed."""


@dataclass(frozen=True, slots=True)
class Part:
    """Something that is made once from what its artifact's facts say."""

    artifact: Artifact
    what: str
    """For the progress line: "building the network for pods"."""
    minutes: float
    """On two cores, measured; for the estimate that is shown, no more."""
    fill: Callable[[Workshop, Path], Mapping[str, Any] | None]
    """Makes it in this folder; what it returns goes into the artifact's manifest."""
    needs: tuple[Part, ...] = ()
    """Parts that must be there first."""


class Workshop:
    """Where parts are made: cache, toolchain, progress, interrupts."""

    def __init__(self, versions: Versions, pair: Pair, cache: Path | None = None, log: Log = to_stderr) -> None:
        self.versions, self.pair, self.log = versions, pair, log
        self.store = Store(cache or cache_root())
        self.toolchain = Toolchain(versions, self.store.root, log)
        self.seconds: dict[str, float] = {}
        """part → how long it took to make, of those made now."""
        self._progress = Progress(log)
        self._interrupts = Interrupts()
        self._found_go: Go | None = None

    def make(self, parts: Iterable[Part]) -> None:
        """Makes those that are missing, and before them what they need.

        Raises:
            ToolchainError: one can't be made.
            KeyboardInterrupt: SIGINT, SIGTERM or SIGHUP came; nothing half made is left, no process runs on.
        """
        missing = [part for part in in_order(parts) if self.store.find(part.artifact) is None]
        seconds = [recipe.estimate(part.minutes) for part in missing]
        with self._interrupts.deferred():
            for position, part in enumerate(missing, 1):
                began = time.monotonic()
                rest = sum(seconds[position:])
                with self._progress.step(part.what, position, len(missing), seconds[position - 1], rest):
                    self._make(part)
                self.seconds[part.artifact.name] = time.monotonic() - began

    def path(self, part: Part) -> Path:
        """Where a part is that was made.

        Raises:
            ToolchainError: it isn't there.
        """
        path = self.store.find(part.artifact)
        if path is None:
            raise ToolchainError(f"{part.artifact.name} is not in the cache {self.store.root}: run ci/airgap/build")
        return path

    def call(self, command: Sequence[str | Path], timeout: float, environment: Mapping[str, str] | None = None) -> str:
        """Runs a command that is part of making something; returns its standard output.

        Raises:
            ToolchainError: it failed, or took longer than `timeout` seconds.
        """
        shown = " ".join(str(word) for word in command)[:200]
        merged = {**os.environ, **(environment or {})}
        try:
            output = run(command, cwd=self.store.root, environment=merged, timeout=timeout, tick=self.tick)
        except subprocess.TimeoutExpired as error:
            raise ToolchainError(f"`{shown}`: no end after {timeout:.0f} s; it was ended") from error
        except OSError as error:
            raise ToolchainError(f"`{shown}` can't be started: {error}") from error
        if output.code:
            last = "\n".join(output.text.splitlines()[-_LINES:])
            raise ToolchainError(f"`{shown}` ended with code {output.code}; its last lines:\n{last}")
        return output.out

    def go(self) -> Go:
        """The Go client."""
        if self._found_go is None:
            self._found_go = find_go(self.versions, self.store, self.log, self.tick)
        return self._found_go

    def tick(self) -> None:
        """To be called often while something runs."""
        self._interrupts.check()
        self._progress.tick()

    def _make(self, part: Part) -> None:
        def fill(folder: Path) -> Mapping[str, Any]:
            began = time.monotonic()
            details = part.fill(self, folder) or {}
            return {**details, "seconds": round(time.monotonic() - began, 1)}

        def waiting() -> None:
            self.log(f"{part.artifact.name} is being made by another process: waiting for it")

        self.store.make(part.artifact, fill, self.tick, waiting)


def in_order(parts: Iterable[Part]) -> list[Part]:
    """The parts and all that they need, each once, needs first."""
    ordered: dict[str, Part] = {}

    def add(part: Part) -> None:
        for need in part.needs:
            add(need)
        ordered.setdefault(part.artifact.folder, part)

    for part in parts:
        add(part)
    return list(ordered.values())


def artifact(name: str, facts: Mapping[str, Any], file: str = "") -> Artifact:
    """An artifact of the air-gapped path, below `airgap` in the cache."""
    return Artifact("airgap", name, {"recipe": RECIPE, **facts}, file)
