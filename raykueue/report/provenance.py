"""Which suite wrote a report: its version, and its commit where it runs from a repository."""

from __future__ import annotations

import subprocess
from importlib import metadata
from pathlib import Path

_TIMEOUT_S = 10
"""Seconds for one git command: it reads a small repository on a local disk."""


def suite_version() -> str:
    """The installed version of raykueue; empty if it isn't installed."""
    try:
        return metadata.version("raykueue")
    except metadata.PackageNotFoundError:
        return ""


def commit_of(file: Path) -> str:
    """The commit that a tracked file belongs to, with `-dirty` behind it if anything tracked was changed.

    Empty if there is no git, no repository, or the repository around the file does not track it: a package in a
    virtualenv inside somebody else's repository has nothing to do with that repository's commit.
    """
    if _git(file.parent, "ls-files", "--error-unmatch", "--", file.name) is None:
        return ""
    return _git(file.parent, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") or ""


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
