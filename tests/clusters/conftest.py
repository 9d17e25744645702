from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from raykueue.clusters.folder import ClusterFolder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[ClusterFolder]:
    path = tmp_path / "c"
    path.mkdir(mode=0o700)
    yield ClusterFolder(path)
    # Whatever a failed test left: exactly what its own folder names.
    keeper = ClusterFolder(path).keeper()
    if keeper is not None:
        keeper.kill()
        keeper.wait(5)
    ClusterFolder(path).reclaim()
