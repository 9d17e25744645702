"""What runs that died have left in the folder of runs: sockets, a journal that no report is waiting for."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from raykueue.clusters.folder import state_root
from raykueue.errors import ClusterError
from raykueue.run.wire import Connection

OWNER_SOCKET = "owner.sock"
"""By which a run's owner is reached, in the run's folder."""
_BIND_SECONDS = 2.0
"""Between the moment when a socket's file is there and the moment when somebody listens."""
_QUIET_SECONDS = 600.0
"""Without a socket a run is about to start, or about to end; it does neither for so long."""


def runs_root() -> Path:
    """Where runs have their folders; it may not exist."""
    return state_root().parent / "runs"


def reclaim_runs() -> list[str]:
    """Removes the folders of runs whose owner is gone, and returns their names."""
    dead = [path for path in sorted(runs_root().glob("run-*")) if _is_dead(path)]
    for path in dead:
        shutil.rmtree(path, ignore_errors=True)
    return [path.name for path in dead]


def _is_dead(folder: Path) -> bool:
    try:
        quiet = time.time() - folder.stat().st_mtime
    except FileNotFoundError:
        return False  # it ended meanwhile, and cleaned up itself
    if not (folder / OWNER_SOCKET).exists():
        return quiet > _QUIET_SECONDS
    try:
        Connection(folder / OWNER_SOCKET, error=ClusterError).close()
    except ClusterError:
        return quiet > _BIND_SECONDS
    return False
