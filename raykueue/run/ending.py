"""Ending a cluster that was left up, whatever state it and its keeper are in."""

from __future__ import annotations

import contextlib

import psutil

from raykueue.clusters.embedded.keeping import REQUEST_SECONDS, Keeping
from raykueue.clusters.folder import ClusterFolder, ends_within
from raykueue.errors import ClusterError, ClusterLocked


def end(folder: ClusterFolder, *, force: bool) -> bool:
    """Ends every process of the cluster and removes its folder. Returns whether there was anything to end.

    Args:
        folder: of the cluster; it need not exist.
        force: also while a run uses it. That run will find its cluster gone.

    Raises:
        ClusterLocked: a run uses it, and `force` is not set; the message says who.
    """
    if not folder.path.exists():
        return False
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(folder.locked("raykueue down"))
        except ClusterLocked:
            if not force:
                raise ClusterLocked(
                    f"cluster {folder.name} is in use by {folder.holder() or 'a run that has just taken it'}; "
                    "wait for it, or take it away with --force"
                ) from None
        if folder.removals():
            folder.clear()
        else:
            _end_keeper(folder)
            folder.reclaim()
    return True


def _end_keeper(folder: ClusterFolder) -> None:
    keeper = folder.keeper()
    if keeper is None:
        return
    with contextlib.suppress(ClusterError):  # it does not answer; then its time is up, too
        Keeping(folder.path).stop()
    if not ends_within(keeper, REQUEST_SECONDS):
        with contextlib.suppress(psutil.NoSuchProcess):
            keeper.kill()
        ends_within(keeper, REQUEST_SECONDS)
