"""Which suite wrote a report: its version, and its commit where it runs from a repository."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

_TIMEOUT_S = 10
"""Seconds for one git command: it reads a small repository on a local disk."""
_DIRTY = "-dirty-"
_LOADED = ("fixtures", "manifests", "suites", ":(glob)*.py", ":(glob)*.toml", ":(glob)*.ini", ":(glob)*.cfg")
"""Beside the package, as git's pathspecs: what a run loads, whether it is tracked or not."""


def suite_version() -> str:
    """The installed version of raykueue; empty if it isn't installed."""
    try:
        return metadata.version("raykueue")
    except metadata.PackageNotFoundError:
        return ""


def commit_of(file: Path) -> str:
    """The commit of the suite in whose package this tracked file is; `-dirty-` and a digest behind it if it differs.

    It differs by anything tracked that is not as in the commit, and by anything untracked that a run would load. The
    digest is of the contents of all that, so two trees are called the same only if they are.

    Empty if there is no git, no repository, or the repository around the file does not track it: a package in a
    virtualenv inside somebody else's repository has nothing to do with that repository's commit.
    """
    package, root = file.parent.name, file.parents[1]
    if _git(root, "ls-files", "--error-unmatch", "--", f"{package}/{file.name}") is None:
        return ""
    top, commit = (_git(root, "rev-parse", *what) for what in (["--show-toplevel"], ["HEAD"]))
    changed = _git(root, "diff", "--name-only", "--no-renames", "--no-relative", "-z", "HEAD")
    added = _git(root, "ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", package, *_LOADED)
    if top is None or commit is None or changed is None or added is None:
        return ""
    names = {name for name in f"{changed}{added}".split("\0") if name}
    return commit.strip() + (f"{_DIRTY}{_digest(Path(top.strip()), names)}" if names else "")


def is_dirty(commit: str) -> bool:
    """The suite was not as in the commit."""
    return _DIRTY in commit


def _digest(top: Path, names: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(names):
        path = top / name
        try:
            runs = not path.is_symlink() and os.access(path, os.X_OK)
            content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        except OSError:  # it was deleted
            runs, content = False, b"\0"
        digest.update(os.fsencode(name) + (b"\0x" if runs else b"\0-") + hashlib.sha256(content).digest())
    return digest.hexdigest()[:12]


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments], capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return os.fsdecode(done.stdout) if done.returncode == 0 else None
