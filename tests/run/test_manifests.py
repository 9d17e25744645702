from __future__ import annotations

from pathlib import Path

import pytest

from raykueue.errors import UsageError
from raykueue.run.manifests import FOLDER, load, load_one


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "guide").mkdir()
    (tmp_path / "one.yaml").write_text("kind: A\n---\n---\nkind: B\n---\nkind: B\n")
    (tmp_path / "guide" / "two.yaml").write_text("kind: C\n")
    return tmp_path


def test_every_document_is_loaded_and_empty_ones_are_none(folder: Path) -> None:
    assert [one["kind"] for one in load("one.yaml", folder)] == ["A", "B", "B"]
    assert load("guide/two.yaml", folder) == [{"kind": "C"}]


def test_a_file_that_does_not_exist_is_told_with_those_that_do(folder: Path) -> None:
    with pytest.raises(
        UsageError, match=r"manifest thre.yaml does not exist in .*; there are: guide/two.yaml, one.yaml"
    ):
        load("thre.yaml", folder)


def test_one_of_a_kind_is_loaded_and_none_or_several_are_refused(folder: Path) -> None:
    assert load_one("one.yaml", "A", folder) == {"kind": "A"}
    for kind, count in (("B", 2), ("C", 0)):
        with pytest.raises(UsageError, match=f"manifest one.yaml has {count} {kind}s, expected one"):
            load_one("one.yaml", kind, folder)


def test_two_loads_share_nothing(folder: Path) -> None:
    load("one.yaml", folder)[0]["kind"] = "changed"
    assert load("one.yaml", folder)[0]["kind"] == "A"


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.yaml")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_everything_in_the_projects_folder_is_a_manifest(path: Path) -> None:
    documents = load(str(path.relative_to(FOLDER)))
    assert documents
    assert all({"apiVersion", "kind", "metadata"} <= document.keys() for document in documents)
