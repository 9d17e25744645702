"""Gives one process files at a path that it insists on, without root and without touching the machine's own.

The only module that knows Linux: a user and mount namespace for that process alone, by util-linux's `unshare`.
Where the kernel or a container forbids it, `can_mount` says so, and callers have another way.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--")
# The process sees an /etc that holds nothing but what it was given: none of ours needs more of it.
_SCRIPT = 'mount -t tmpfs tmpfs /etc && mkdir -p "$1" && mount --bind "$2" "$1" && shift 2 && exec "$@"'


@functools.cache
def can_mount() -> bool:
    """Whether this user may do so on this machine; tried once."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    trial = [*_UNSHARE, "sh", "-c", "mount -t tmpfs tmpfs /etc"]
    return subprocess.run(trial, capture_output=True, timeout=10, check=False).returncode == 0


def mounted(argv: Sequence[str], folders: Mapping[str, Path]) -> list[str]:
    """The command line that runs `argv` with this folder at this path below /etc: {"/etc/x/certs": folder}.

    Raises:
        ValueError: not exactly one path, or not below /etc.
    """
    [(target, source)] = folders.items()
    if not target.startswith("/etc/"):
        raise ValueError(f"{target}: expected a path below /etc")
    return [*_UNSHARE, "sh", "-c", _SCRIPT, "sh", target, str(source), *argv]
