"""A cluster's state, saved once it was ready, so that later starts begin there.

What is saved is etcd's data folder and the keys that its contents trust. It is copied while etcd is stopped for a
moment by SIGSTOP: the copy is what a crash at that instant would have left, from which etcd recovers by design.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

USABLE_DAYS = 180
"""Older states are made anew: their certificates must stay valid for 90 more days (Kueue's rotation)."""

FORMAT = 1


@dataclass(frozen=True, slots=True)
class SavedState:
    """The saved state for one content digest."""

    path: Path

    @classmethod
    def of(cls, cache: Path, digest: str) -> SavedState:
        """Where the state with this digest is, or would be."""
        return cls(cache / "state" / f"{digest[:24]}-{FORMAT}")

    def exists(self) -> bool:
        """Whether it can be used."""
        try:
            age = time.time() - (self.path / "ports.json").stat().st_mtime
        except OSError:
            return False
        return age < USABLE_DAYS * 86400

    def ports(self) -> dict[str, int]:
        """The Service ports that its contents name, by `namespace/name`."""
        found: dict[str, int] = json.loads((self.path / "ports.json").read_text())
        return found

    def restore(self, folder: Path) -> None:
        """Copies etcd's data and the keys into a cluster's folder."""
        shutil.copytree(self.path / "etcd", folder / "etcd")
        shutil.copytree(self.path / "pki", folder / "pki")

    def save(self, folder: Path, etcd_pid: int, ports: Mapping[str, int]) -> None:
        """Saves the state of a running cluster; the first of several that save at once wins."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = self.path.with_name(f"{self.path.name}.{os.getpid()}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(mode=0o700)
        try:
            os.kill(etcd_pid, signal.SIGSTOP)
            try:
                shutil.copytree(folder / "etcd", partial / "etcd")
            finally:
                os.kill(etcd_pid, signal.SIGCONT)
            shutil.copytree(folder / "pki", partial / "pki")
            (partial / "ports.json").write_text(json.dumps(dict(ports)))
            if self.path.exists() and not self.exists():
                shutil.rmtree(self.path)
            with contextlib.suppress(OSError):
                partial.rename(self.path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
