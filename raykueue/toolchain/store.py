"""The cache on disk: an artifact is a folder that is there as a whole, or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from raykueue.errors import ToolchainError
from raykueue.toolchain.process import TICK

MANIFEST = "artifact.json"
WAIT = 2 * 3600.0
"""Seconds to wait for another process that makes the same artifact: longer than any build is given."""


def cache_root() -> Path:
    """RAYKUEUE_CACHE, else the user's cache directory."""
    chosen = os.environ.get("RAYKUEUE_CACHE")
    return Path(chosen).expanduser().absolute() if chosen else user_cache_path("raykueue")


@dataclass(frozen=True, slots=True)
class Artifact:
    """Something that can be made from what `facts` say, and is found again by them."""

    kind: str
    """The folder under the cache's root: bin, src, wrap, go."""
    name: str
    """kueue-0.19.2"""
    facts: Mapping[str, Any]
    """Everything that decides the content, JSON. The Go version is not among them: whatever Go built it from the same
    source by the same recipe, it is good, and looking it up would cost a process each time."""
    file: str = ""
    """The file that counts; empty: the folder itself."""

    @property
    def key(self) -> str:
        """sha256 (hex) of the facts."""
        return hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()

    @property
    def folder(self) -> str:
        """Its folder, below the root."""
        return f"{self.kind}/{self.name}-{self.key[:12]}"


class Store:
    """Finds artifacts, and makes those that are missing, once, however many processes ask."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, artifact: Artifact) -> Path | None:
        """The path of the artifact if it is complete."""
        folder = self.root / artifact.folder
        path = folder / artifact.file
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            whole = not artifact.file or path.stat().st_size == manifest["size"]
        except (OSError, ValueError, KeyError):
            return None
        return path if whole and manifest.get("key") == artifact.key else None

    def make(
        self,
        artifact: Artifact,
        fill: Callable[[Path], Mapping[str, Any]],
        tick: Callable[[], None],
        waiting: Callable[[], None],
    ) -> Path:
        """The path of the artifact, made by `fill(folder)` if it is missing; what `fill` returns goes in its manifest.

        `waiting` is called once if another process is making it, `tick` often while it does.

        Raises:
            ToolchainError: the cache can't be written, or `fill` said so.
        """
        folder = self.root / artifact.folder
        lock = FileLock(self.root / "locks" / f"{artifact.kind}-{folder.name}.lock")
        try:
            Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            self._acquire(lock, artifact, tick, waiting)
            try:
                return self.find(artifact) or self._publish(artifact, folder, fill)
            finally:
                lock.release()
        except OSError as error:
            raise _unwritable(self.root, error) from error

    def _acquire(
        self, lock: FileLock, artifact: Artifact, tick: Callable[[], None], waiting: Callable[[], None]
    ) -> None:
        deadline = time.monotonic() + WAIT
        try:
            lock.acquire(timeout=0)
            return
        except Timeout:
            waiting()
        while True:
            try:
                lock.acquire(timeout=TICK)
                return
            except Timeout:
                tick()
            if time.monotonic() > deadline:
                raise ToolchainError(
                    f"{artifact.name}: another process has been making it for {WAIT / 60:.0f} minutes "
                    f"(lock {lock.lock_file}): end that process and try again"
                )

    def _publish(self, artifact: Artifact, folder: Path, fill: Callable[[Path], Mapping[str, Any]]) -> Path:
        # Under the lock: whatever unfinished folder is here belongs to a process that is gone.
        prefix = f".{folder.name}."
        for left in folder.parent.glob(f"{prefix}*"):
            shutil.rmtree(left, ignore_errors=True)
        building = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
        try:
            details = fill(building)
            size = (building / artifact.file).stat().st_size if artifact.file else 0
            manifest = {"key": artifact.key, "facts": dict(artifact.facts), "size": size, **details}
            (building / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
            building.chmod(0o755)
            if folder.exists():  # there, but not whole
                folder.rename(building.with_name(f"{building.name}.broken"))
            building.replace(folder)
        finally:
            for left in folder.parent.glob(f"{building.name}*"):
                shutil.rmtree(left, ignore_errors=True)
        return folder / artifact.file


def _unwritable(root: Path, error: OSError) -> ToolchainError:
    if error.errno == errno.ENOSPC:
        return full_disk(root, str(error))
    return ToolchainError(f"cache {root}: {error}; set RAYKUEUE_CACHE to a directory that can be written")


def full_disk(root: Path, seen: str) -> ToolchainError:
    """The error for a disk without room, wherever it was met."""
    return ToolchainError(
        f"the disk is full. All binaries of a pair take about 0.6 GB in {root} (RAYKUEUE_CACHE), what Go downloads and "
        f"compiles about 8 GB in its own caches (GOMODCACHE, GOCACHE) the first time: free some, or move one.\n{seen}"
    )
