"""The toolchain: every binary and manifest of a pair, from the cache or made now."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from raykueue.errors import UsageError
from raykueue.model.versions import Pair, Release, Versions
from raykueue.toolchain import recipe
from raykueue.toolchain.golang import BUILD, DOWNLOAD, Go, find_go
from raykueue.toolchain.interrupt import Interrupts
from raykueue.toolchain.progress import Log, Progress
from raykueue.toolchain.recipe import PROGRAMS, SOURCES, Program
from raykueue.toolchain.store import Artifact, Store, cache_root

_SOURCES = "-sources"

NAMES: tuple[str, ...] = (*PROGRAMS, *(product + _SOURCES for product in SOURCES))
"""Everything there is: programs, and `<product>-sources` (manifests)."""

_EMBEDDED = recipe.programs_for("embedded")
_PRODUCTS = {program.product for program in _EMBEDDED}
EMBEDDED: tuple[str, ...] = (
    *(program.name for program in _EMBEDDED),
    *(product + _SOURCES for product in SOURCES if product in _PRODUCTS),
)
"""What the embedded cluster needs: what is made when nothing else is asked for."""


def to_stderr(line: str) -> None:
    """Where progress goes if nothing else is said."""
    sys.stderr.write(f"raykueue: {line}\n")
    sys.stderr.flush()


class Toolchain:
    """Makes and finds what is pinned. Nothing of Go is started when everything is in the cache."""

    def __init__(self, versions: Versions, cache: Path | None = None, log: Log = to_stderr) -> None:
        self.versions = versions
        self.store = Store(cache or cache_root())
        self._log = log
        self._progress = Progress(log)
        self._interrupts = Interrupts()
        self._found_go: Go | None = None

    def binary(self, name: str, pair: Pair) -> Path:
        """The path of a program, built if it is missing.

        Raises:
            UsageError: there is no such program.
            ToolchainError: it can't be built, or is not what versions.toml pins.
        """
        if name not in PROGRAMS:
            raise UsageError(f"program {name!r} is not known; known: {', '.join(PROGRAMS)}")
        return self.ensure(pair, [name])[name]

    def sources(self, product: str, pair: Pair) -> Path:
        """The folder with a product's manifests, laid out as in its module: `sources("kueue", pair) / "config"`.

        Raises:
            UsageError: the product has none.
            ToolchainError: they can't be had, or are not what versions.toml pins.
        """
        if product not in SOURCES:
            raise UsageError(f"product {product!r} has no manifests; known: {', '.join(SOURCES)}")
        name = product + _SOURCES
        return self.ensure(pair, [name])[name]

    def have(self, name: str, pair: Pair) -> Path | None:
        """The path of a program, or of `<product>-sources`, if it is in the cache.

        Raises:
            UsageError: there is no such thing.
        """
        return self.store.find(self.artifact(name, pair))

    def ensure(self, pair: Pair, names: Iterable[str] | None = None) -> dict[str, Path]:
        """name → path, for these names or all of `EMBEDDED`; what is missing is made, with progress lines.

        Raises:
            UsageError: there is no such thing.
            ToolchainError: something can't be made, or is not what versions.toml pins.
            KeyboardInterrupt: SIGINT, SIGTERM or SIGHUP came; nothing half made is left, no process runs on.
        """
        paths = {name: self.have(name, pair) for name in (EMBEDDED if names is None else names)}
        missing = [name for name, path in paths.items() if path is None]
        seconds = [recipe.estimate(_minutes(name)) for name in missing]
        with self._interrupts.deferred():
            for position, name in enumerate(missing, 1):
                release = self.release(name, pair)
                what = f"{'fetching manifests of' if name.endswith(_SOURCES) else 'building'} {_label(name, release)}"
                with self._progress.step(what, position, len(missing), seconds[position - 1], sum(seconds[position:])):
                    paths[name] = self._make(name, self.artifact(name, pair), release)
        return {name: path for name, path in paths.items() if path is not None}

    def release(self, name: str, pair: Pair) -> Release:
        """The release that a program or `<product>-sources` comes from."""
        if name not in NAMES:
            raise UsageError(f"{name!r} is not part of the toolchain; known: {', '.join(NAMES)}")
        product = PROGRAMS[name].product if name in PROGRAMS else name.removesuffix(_SOURCES)
        return self.versions.release_for(product, pair)

    def artifact(self, name: str, pair: Pair) -> Artifact:
        """What is looked for in the cache."""
        release = self.release(name, pair)
        if name not in PROGRAMS:
            return Artifact(
                "src", str(release).replace(" ", "-"), self._facts(release, folders=SOURCES[release.product])
            )
        arguments = recipe.build_arguments(PROGRAMS[name], release)
        facts = self._facts(release, build=arguments, platform=recipe.go_platform())
        return Artifact("bin", f"{name}-{release.version}", facts, file=name)

    def _facts(self, release: Release, **more: Any) -> dict[str, Any]:
        pinned = {"module": release.module, "version": release.version, "checksum": release.checksum}
        return {**pinned, "recipe": self.versions.recipe, **more}

    def _make(self, name: str, artifact: Artifact, release: Release) -> Path:
        go = self._go()

        def fill(folder: Path) -> Mapping[str, Any]:
            began = time.monotonic()
            if name in PROGRAMS:
                self._build(go, PROGRAMS[name], release, folder)
            else:
                _copy_sources(go, release, folder)
            return {"go": go.version, "made": _now(), "seconds": round(time.monotonic() - began, 1)}

        return self._store(artifact, fill)

    def _build(self, go: Go, program: Program, release: Release, folder: Path) -> None:
        wrapper = self._wrapper(go, release, program.use)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            command, *arguments = recipe.build_arguments(program, release)
            go.call([command, "-o", folder / program.name, *arguments], wrapper, BUILD, Path(scratch))

    def _wrapper(self, go: Go, release: Release, use: recipe.Use) -> Path:
        """A module with the release as a dependency, resolved, with checksums; a product's programs of a use share it.

        Not those of another use: whoever needs no kubelet need not download what it is compiled from.
        """
        packages = [program.package for program in recipe.programs_for(use, release.product)]
        artifact = Artifact("wrap", str(release).replace(" ", "-"), self._facts(release, packages=packages))

        def fill(folder: Path) -> Mapping[str, Any]:
            content = go.describe(go.module(release, folder).go_mod, folder)
            (folder / "go.mod").write_text(recipe.wrapper_module(content, release), encoding="utf-8")
            go.call(["get", "-tool", *(f"{package}@{release.tag}" for package in packages)], folder, DOWNLOAD)
            return {"go": go.version, "made": _now()}

        return self.store.find(artifact) or self._store(artifact, fill)

    def _store(self, artifact: Artifact, fill: Callable[[Path], Mapping[str, Any]]) -> Path:
        def waiting() -> None:
            self._log(f"{artifact.name} is being made by another process: waiting for it")

        return self.store.make(artifact, fill, self._tick, waiting)

    def _go(self) -> Go:
        if self._found_go is None:
            self._found_go = find_go(self.versions, self.store, self._log, self._tick)
        return self._found_go

    def _tick(self) -> None:
        self._interrupts.check()
        self._progress.tick()


def _copy_sources(go: Go, release: Release, folder: Path) -> None:
    module = go.module(release, folder)
    for source in SOURCES[release.product]:
        root = module.folder / source
        for path in sorted(root.rglob("*")):
            target = folder / source / path.relative_to(root)
            # Content only: in Go's module cache everything is read-only, folders too.
            if path.is_dir():
                target.mkdir(parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


def _minutes(name: str) -> float:
    return PROGRAMS[name].minutes if name in PROGRAMS else recipe.SOURCES_MINUTES


def _label(name: str, release: Release) -> str:
    return f"{name.removesuffix(_SOURCES)} {release.version}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
