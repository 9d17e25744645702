"""What this path needs of a machine, asked before anything is begun: all that is missing is said at once."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from raykueue.errors import InfraError

COMMANDS: Mapping[str, str] = {
    "dockerd": "docker.io",
    "docker": "docker.io",
    "runc": "runc",
    "debootstrap": "debootstrap",
    "iptables": "iptables",
    "ip": "iproute2",
    "unshare": "util-linux",
}
"""Command → the Debian package that brings it."""
GIGABYTES = 12.0
"""Of disk: the cache takes 3.5, the daemon's images 1.7, a cluster of three nodes about 6 more."""


def packages_missing(commands: Mapping[str, str] = COMMANDS) -> list[str]:
    """The Debian packages to install, each once."""
    return sorted({package for command, package in commands.items() if shutil.which(command) is None})


def check(cache: Path, *, commands: Mapping[str, str] = COMMANDS) -> None:
    """Raises unless everything is there.

    Raises:
        InfraError: something is missing; the message says everything that is, and what to do.
    """
    problems = list(_problems(cache, packages_missing(commands)))
    if problems:
        raise InfraError("kind without a registry can't be built here:\n" + "\n".join(f"  - {one}" for one in problems))


def _problems(cache: Path, packages: Sequence[str]) -> list[str]:
    problems = []
    if platform.system() != "Linux":
        return [f"this is {platform.system()}: Linux is needed"]
    if os.geteuid() != 0:
        problems.append("not root: mounting layers and starting a Docker daemon need it; run it with sudo -E")
    if packages:
        problems.append(f"Debian packages are missing: apt-get install --no-install-recommends {' '.join(packages)}")
    folder = next(path for path in (cache, *cache.parents) if path.exists())
    free = shutil.disk_usage(folder).free / 1e9
    if free < GIGABYTES:
        problems.append(
            f"{folder} has {free:.1f} GB left, about {GIGABYTES:.0f} are needed: free some, or set RAYKUEUE_CACHE"
        )
    return problems


def can_install() -> bool:
    """Whether Debian packages can be installed: as root, where apt-get is."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None
