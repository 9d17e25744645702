"""What kind needs of the machine, looked at before anything is started: one line of advice for each thing missing."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from raykueue.clusters.kind.docker import Docker
from raykueue.errors import ClusterError

GIB = 1 << 30
DISK_GIB = 8
"""Three nodes with Kueue, KubeRay and Ray unpacked took 5.8 GB of volumes."""
MEMORY_GIB = 4
"""Three nodes with both controllers and one RayJob took 3.6 to 5.3 GiB of a whole machine, 3 GiB of it theirs."""
INSTANCES = 128
"""The kernel's default, with which three nodes come up; kind advises 512, for more of them."""
WATCHES = 32768
"""kind advises 524288, for many nodes; its known issue is "too many open files" in a kubelet that can't watch."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is."""

    disk_free: int | None
    """Bytes where Docker keeps its data; None if that is on another machine, or can't be seen."""
    memory_free: int
    """Bytes."""
    inotify_instances: int | None
    inotify_watches: int | None

    @classmethod
    def seen(cls, info: Mapping[str, Any], inotify: Path = Path("/proc/sys/fs/inotify")) -> Machine:
        """This machine, with what its Docker says of itself."""
        root = Path(info.get("DockerRootDir") or "/nowhere")
        here = root.is_dir()  # else Docker runs elsewhere: its memory is known, and nothing else
        return cls(
            disk_free=shutil.disk_usage(root).free if here else None,
            memory_free=psutil.virtual_memory().available if here else int(info.get("MemTotal") or 0),
            inotify_instances=_number(inotify / "max_user_instances") if here else None,
            inotify_watches=_number(inotify / "max_user_watches") if here else None,
        )

    def problems(self) -> list[str]:
        """One line for each thing that is not enough, with what to do."""
        found = []
        if self.disk_free is not None and self.disk_free < DISK_GIB * GIB:
            found.append(
                f"{self.disk_free / GIB:.1f} GiB are free where Docker keeps its data, expected {DISK_GIB}: "
                "`docker system prune`, or another data-root"
            )
        if self.memory_free < MEMORY_GIB * GIB:
            found.append(
                f"{self.memory_free / GIB:.1f} GiB of memory are free, expected {MEMORY_GIB}: end something, or run "
                "fewer tests at once with --cluster embedded"
            )
        for name, has, wanted, advised in (
            ("max_user_instances", self.inotify_instances, INSTANCES, 512),
            ("max_user_watches", self.inotify_watches, WATCHES, 524288),
        ):
            if has is not None and has < wanted:
                found.append(
                    f"fs.inotify.{name} is {has}, expected {wanted} at least: `sudo sysctl fs.inotify.{name}={advised}`"
                )
        return found


def check(docker: Docker) -> None:
    """Returns if a kind cluster can be started here.

    Raises:
        ClusterError: it can't; a line for each thing that is missing.
    """
    if problems := Machine.seen(docker.info()).problems():
        raise ClusterError(f"no kind cluster can be started here: {'; '.join(problems)}")


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
