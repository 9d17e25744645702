from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raykueue.clusters.kind.commands import Commands
from raykueue.clusters.kind.docker import Docker
from raykueue.clusters.kind.images import Images
from raykueue.errors import ClusterError
from tests.clusters.kind.tools import Tools

ID = "sha256:0123456789abcdef"


class Loader:
    def __init__(self) -> None:
        self.loaded: list[tuple[str, list[str]]] = []

    def load_archive(self, archive: Path, nodes: list[str]) -> None:
        self.loaded.append((archive.name, nodes))


@pytest.fixture
def images(commands: Commands, tmp_path: Path) -> Images:
    return Images(Docker(commands), tmp_path / "archives")


def saves(tools: Tools) -> int:
    return sum(call[1] == "save" for call in tools.calls)


def test_a_local_image_is_saved_once_for_all_runs(tools: Tools, images: Images) -> None:
    tools.answer("inspect", out=ID)
    tools.answer("save", makes="--output")
    path = images.archive("site/kueue:v1")
    assert path.name == "site-kueue-v1-0123456789ab.tar"
    assert path.read_text() == "made"
    assert images.archive("site/kueue:v1") == path
    assert saves(tools) == 1
    assert "pull" not in [call[1] for call in tools.calls]


def test_an_image_that_is_not_here_is_pulled(tools: Tools, images: Images) -> None:
    tools.answer("inspect", err="No such image", code=1, times=1)
    tools.answer("inspect", out=ID)
    tools.answer("save", makes="--output")
    assert images.archive("kueue:v1").exists()
    assert ["docker", "pull", "--quiet", "kueue:v1"] in tools.calls


def test_another_image_of_the_same_name_replaces_the_archive_and_no_other(tools: Tools, images: Images) -> None:
    tools.answer("inspect", "a:1", out=ID, times=1)
    tools.answer("inspect", "a:1", out="sha256:fedcba9876543210")
    tools.answer("inspect", "a:1-b", out=ID)
    tools.answer("save", makes="--output")
    first, other = images.archive("a:1"), images.archive("a:1-b")
    second = images.archive("a:1")
    assert second != first
    assert sorted(second.parent.iterdir()) == sorted([second, other])


def test_a_failed_save_leaves_nothing(tools: Tools, images: Images, tmp_path: Path) -> None:
    tools.answer("inspect", out=ID)
    tools.answer("save", makes="--output", err="write: no space left on device", code=1)
    with pytest.raises(ClusterError, match="the disk is full"):
        images.archive("a:1")
    assert list((tmp_path / "archives").iterdir()) == []


def test_a_node_that_has_the_image_is_left_alone(tools: Tools, images: Images, tmp_path: Path) -> None:
    tools.answer("inspect", out=ID)
    tools.answer("exec", "one", out=f"docker.io/library/a:1\n{ID}")
    tools.answer("exec", "two", out="docker.io/library/a:1\nsha256:another")
    loader: Any = Loader()
    images.load("a:1", tmp_path / "a.tar", loader, ["one", "two"])
    images.load("a:1", tmp_path / "a.tar", loader, ["one"])
    assert loader.loaded == [("a.tar", ["two"])]
