"""What a cluster said that `raykueue up` could not start: kept until a cluster of its name is started again."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from raykueue.clusters.folder import state_root
from raykueue.errors import ClusterError, InfraError


@contextlib.contextmanager
def logs_of_a_start(name: str) -> Iterator[Path]:
    """The folder for the logs of a start, should it fail; it is not there yet.

    Raises:
        ClusterError: the start has failed and left logs; the message is its own, and names the folder.
    """
    folder = state_root().parent / "failed" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        yield folder
    except InfraError as error:
        if folder.exists():
            raise ClusterError(f"{error}\nwhat its components said is kept in {folder}") from error
        raise
