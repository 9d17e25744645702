from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from raykueue.controllers import rendered as rendered_module
from raykueue.controllers.rendered import Rendered, render, without
from raykueue.errors import ToolchainError
from tests.controllers.shipped import kueue, obj


def named(manifests: Iterable[Mapping[str, Any]]) -> list[str]:
    return [f"{one['kind']} {one['metadata']['name']}" for one in manifests]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "src" / "kueue-1"
    (folder / "config" / "default").mkdir(parents=True)
    (folder / "config" / "default" / "all.yaml").write_text("kind: A\n---\n---\nkind: B\n")
    return folder


def kustomize(tmp_path: Path, script: str) -> Path:
    """A program that does what the script says, with the folder as $2; it counts its calls."""
    path = tmp_path / "kustomize-1" / "kustomize"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho >> {tmp_path}/calls\n{script}\n")
    path.chmod(0o755)
    return path


def calls(tmp_path: Path) -> int:
    return len((tmp_path / "calls").read_text().splitlines())


def test_what_is_rendered_is_kept_and_empty_documents_are_not(tmp_path: Path, sources: Path) -> None:
    program = kustomize(tmp_path, 'cat "$2/all.yaml"')
    for _ in range(2):
        done = render("kueue", program, sources, tmp_path / "cache")
        assert done.manifests == [{"kind": "A"}, {"kind": "B"}]
    assert calls(tmp_path) == 1
    assert len(list((tmp_path / "cache" / "manifests").iterdir())) == 1


def test_another_folder_of_the_same_sources_is_rendered_for_itself(tmp_path: Path, sources: Path) -> None:
    program = kustomize(tmp_path, 'cat "$2/all.yaml"')
    render("kueue", program, sources, tmp_path / "cache")
    (sources / "config" / "crd").mkdir()
    (sources / "config" / "crd" / "all.yaml").write_text("kind: C\n")
    assert render("kueue", program, sources, tmp_path / "cache", "config/crd").manifests == [{"kind": "C"}]


def test_a_failure_is_told_in_the_words_of_kustomize_and_nothing_is_kept(tmp_path: Path, sources: Path) -> None:
    program = kustomize(tmp_path, "echo 'kind: A'; echo 'no such base' >&2; exit 1")
    with pytest.raises(ToolchainError, match="kustomize build of kueue's config/default failed:\nno such base"):
        render("kueue", program, sources, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_a_program_that_is_missing_or_hangs_is_a_failure_of_the_toolchain(
    tmp_path: Path, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolchainError, match=r"failed: .*No such file"):
        render("kueue", tmp_path / "nowhere", sources, tmp_path / "cache")
    monkeypatch.setattr(rendered_module, "_SECONDS", 0.1)
    with pytest.raises(ToolchainError, match="timed out"):
        render("kueue", kustomize(tmp_path, "exec sleep 60"), sources, tmp_path / "cache")


def test_an_account_gets_what_is_bound_to_it_and_no_more() -> None:
    assert named(kueue().bound_rbac("kueue-controller-manager")) == [
        "ServiceAccount kueue-controller-manager",
        "Role leader",
        "ClusterRole manager",
        "RoleBinding leader",
        "ClusterRoleBinding manager",
    ]


def test_a_manifest_is_found_by_the_end_of_its_name() -> None:
    assert kueue().one("Secret", "webhook-server-cert")["metadata"]["name"] == "kueue-webhook-server-cert"


@pytest.mark.parametrize(("name", "count"), [("nobody", 0), ("er", 2)])
def test_none_or_several_are_refused_with_their_number(name: str, count: int) -> None:
    with pytest.raises(ToolchainError, match=f"kueue ships {count} ClusterRoles named …{name}, expected one"):
        kueue().one("ClusterRole", name)


def test_kinds_keep_the_order_in_which_they_are_shipped() -> None:
    shipped = Rendered("p", [obj("B", "1"), obj("A", "2"), obj("C", "3"), obj("B", "4")])
    assert named(shipped.of("A", "B")) == ["B 1", "A 2", "B 4"]


def test_without_leaves_out_by_name() -> None:
    assert named(without([obj("A", "1"), obj("A", "2")], ["2", "3"])) == ["A 1"]
