from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from raykueue.clusters.embedded.keeping import Keeping
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


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeping]:
    """One keeper for all tests that leave it alone: to start one takes longer than most tests."""
    path = tmp_path_factory.mktemp("shared") / "c"
    path.mkdir(mode=0o700)
    keeping = Keeping.launch(path)
    yield keeping
    keeping.stop()


@pytest.fixture
def keeping(shared: Keeping) -> Iterator[Keeping]:
    """The shared keeper, with nothing that runs, and nothing that a component `part` has written."""
    yield shared
    for name, about in shared.status().items():
        if about["alive"]:
            shared.kill(name)
    shutil.rmtree(shared.folder / "part", ignore_errors=True)
    (shared.folder / "part.log").unlink(missing_ok=True)
