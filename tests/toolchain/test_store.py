from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from raykueue.errors import ToolchainError
from raykueue.toolchain.store import MANIFEST, Artifact, Store, cache_root

THING = Artifact("bin", "thing-1.0.0", {"checksum": "h1:a", "flags": ["-s"]}, file="thing")


def nothing() -> None:
    pass


def fill(folder: Path) -> Mapping[str, Any]:
    (folder / "thing").write_text("whole")
    return {"go": "1.26.8"}


def make(store: Store) -> Path:
    return store.make(THING, fill, nothing, nothing)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_what_was_made_is_found(store: Store) -> None:
    assert store.find(THING) is None
    assert make(store) == store.find(THING)


def test_it_is_made_once(store: Store) -> None:
    path = make(store)
    path.write_text("WHOLE")
    assert make(store).read_text() == "WHOLE"


@pytest.mark.parametrize("facts", [{"checksum": "h1:b", "flags": ["-s"]}, {"checksum": "h1:a", "flags": ["-w"]}])
def test_other_facts_are_another_artifact(store: Store, facts: Mapping[str, Any]) -> None:
    make(store)
    assert store.find(Artifact("bin", "thing-1.0.0", facts, file="thing")) is None


def test_the_order_of_facts_does_not_matter() -> None:
    turned = Artifact("bin", "thing-1.0.0", dict(reversed(list(THING.facts.items()))), file="thing")
    assert turned.key == THING.key


def test_nothing_is_visible_while_it_is_made(store: Store) -> None:
    def look(folder: Path) -> Mapping[str, Any]:
        details = fill(folder)
        assert store.find(THING) is None
        return details

    store.make(THING, look, nothing, nothing)
    assert store.find(THING) is not None


def test_what_failed_leaves_nothing(store: Store) -> None:
    def fail(folder: Path) -> Mapping[str, Any]:
        fill(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.make(THING, fail, nothing, nothing)
    assert list((store.root / "bin").iterdir()) == []
    assert make(store).exists()


@pytest.mark.parametrize("damage", ["cut", "no manifest", "no file"])
def test_what_is_not_whole_is_not_used_but_made_anew(store: Store, damage: str) -> None:
    path = make(store)
    if damage == "cut":
        path.write_text("who")
    elif damage == "no manifest":
        (path.parent / MANIFEST).unlink()
    else:
        path.unlink()
    assert store.find(THING) is None
    assert make(store).read_text() == "whole"
    assert [entry.name for entry in (store.root / "bin").iterdir()] == [path.parent.name]


def test_what_a_killed_process_left_is_removed(store: Store) -> None:
    left = store.root / "bin" / f".{Path(THING.folder).name}.left"
    left.mkdir(parents=True)
    (left / "thing").write_text("who")
    make(store)
    assert not left.exists()


def test_a_full_disk_is_named_with_what_to_free(store: Store) -> None:
    def full(folder: Path) -> Mapping[str, Any]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))

    with pytest.raises(ToolchainError, match=r"disk is full.*RAYKUEUE_CACHE"):
        store.make(THING, full, nothing, nothing)


def test_a_cache_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ToolchainError, match="RAYKUEUE_CACHE"):
        make(Store(tmp_path / "file"))


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAYKUEUE_CACHE", str(tmp_path))
    assert cache_root() == tmp_path
    monkeypatch.delenv("RAYKUEUE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert cache_root().name == "raykueue"
