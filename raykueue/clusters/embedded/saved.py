"""A cluster's state, saved once it was ready, so that later starts begin there.

What is saved is etcd's data folder and the keys that its contents trust. It is copied while etcd is stopped for a
moment by SIGSTOP: the copy is what a crash at that instant would have left, from which etcd recovers by design.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from raykueue.errors import ClusterError

USABLE_DAYS = 180
"""Older states are made anew: their certificates must stay valid for 90 more days (Kueue's rotation)."""

FORMAT = 1
_STOP_SECONDS = 5.0
"""Until etcd stands still; only a write that hangs in the kernel takes longer than a moment."""


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

    def drop(self) -> None:
        """Removes it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def save(self, folder: Path, etcd_pid: int, ports: Mapping[str, int]) -> None:
        """Saves the state of a running cluster; the first of several that save at once wins.

        Raises:
            ClusterError: it can't be copied.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(
                prefix=f"{self.path.name}.", suffix=".partial", dir=self.path.parent, ignore_cleanup_errors=True
            ) as name:
                whole = Path(name) / "state"
                whole.mkdir(mode=0o700)
                with _stopped(etcd_pid):
                    shutil.copytree(folder / "etcd", whole / "etcd")
                shutil.copytree(folder / "pki", whole / "pki")
                (whole / "ports.json").write_text(json.dumps(dict(ports)))
                if self.path.exists() and not self.exists():
                    shutil.rmtree(self.path)
                try:
                    whole.rename(self.path)
                except OSError:
                    if not self.exists():  # else another was faster
                        raise
        except (OSError, shutil.Error, psutil.Error) as error:
            raise ClusterError(
                f"the state of {folder.name} could not be saved in {self.path.parent}: {error}"
            ) from error


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    process = psutil.Process(pid)
    process.send_signal(signal.SIGSTOP)
    try:
        deadline = time.monotonic() + _STOP_SECONDS
        while process.status() != psutil.STATUS_STOPPED:  # the signal is only on its way
            if time.monotonic() > deadline:
                raise ClusterError(f"etcd (pid {pid}) did not stand still within {_STOP_SECONDS:g} s of SIGSTOP")
            time.sleep(0.001)
        yield
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGCONT)
