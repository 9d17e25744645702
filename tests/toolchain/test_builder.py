from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from raykueue.errors import ToolchainError, UsageError
from raykueue.model.versions import Versions
from raykueue.toolchain.builder import EMBEDDED, NAMES, Toolchain
from raykueue.toolchain.recipe import PROGRAMS
from raykueue.toolchain.store import MANIFEST
from tests.toolchain.fake_go import FakeGo


def test_a_missing_binary_is_built_into_its_own_folder(toolchain: Toolchain, versions: Versions) -> None:
    path = toolchain.binary("kueue", versions.default)
    assert path.read_text() == "a binary\n"
    assert path.name == "kueue"
    assert path.parent.name.startswith("kueue-0.19.2-")
    assert sorted(entry.name for entry in path.parent.iterdir()) == [MANIFEST, "kueue"]


def test_a_cached_binary_is_found_without_starting_go(toolchain: Toolchain, versions: Versions, go: FakeGo) -> None:
    names = ["kube-apiserver", "kwok", "kwok-sources"]
    first = toolchain.ensure(versions.default, names)
    before = go.calls()
    go.path.unlink()
    assert Toolchain(versions, toolchain.store.root).ensure(versions.default, names) == first
    assert go.calls() == before


def test_what_an_embedded_cluster_needs_is_ensured_at_once_and_nothing_else(
    toolchain: Toolchain, versions: Versions, go: FakeGo
) -> None:
    paths = toolchain.ensure(versions.default)
    for_others = {"kind", "kubectl", "kubeadm", "kubelet", "kube-proxy", "crictl", "kind-sources", "actionlint"}
    assert set(paths) == set(EMBEDDED) == set(NAMES) - for_others
    assert len(go.calls("build")) == len(set(PROGRAMS) - for_others)
    assert len(go.calls("version")) == 1


def test_the_programs_of_kubernetes_share_one_wrapper(toolchain: Toolchain, versions: Versions, go: FakeGo) -> None:
    toolchain.ensure(versions.default, ["kube-apiserver", "kube-scheduler"])
    assert len(go.calls("get")) == 1
    assert [call.rsplit("/", 1)[1] for call in go.calls("build")] == ["kube-apiserver", "kube-scheduler"]


def test_two_releases_of_a_product_lie_side_by_side(toolchain: Toolchain, versions: Versions) -> None:
    new = toolchain.binary("kueue", versions.default)
    old = toolchain.binary("kueue", versions.pair(kueue="0.16.2"))
    assert new != old
    assert new.exists()
    assert old.exists()


def test_a_binary_is_good_whatever_go_built_it(toolchain: Toolchain, versions: Versions, go: FakeGo) -> None:
    path = toolchain.binary("etcd", versions.default)
    go.version("1.27.0")
    assert Toolchain(versions, toolchain.store.root).binary("etcd", versions.default) == path
    assert len(go.calls("build")) == 1


def test_another_recipe_builds_anew(toolchain: Toolchain, versions: Versions) -> None:
    path = toolchain.binary("etcd", versions.default)
    changed = replace(versions, recipe=versions.recipe + 1)
    assert Toolchain(changed, toolchain.store.root).have("etcd", versions.default) is None
    assert path.exists()


def test_the_build_is_told_exactly_what_decides_its_result(
    toolchain: Toolchain, versions: Versions, go: FakeGo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOFLAGS", "-tags=surprise")
    monkeypatch.setenv("GOPROXY", "https://proxy.invalid")
    toolchain.binary("kwok", versions.default)
    (call,) = go.calls("build")
    assert call.endswith("-trimpath -ldflags -s -w sigs.k8s.io/kwok/cmd/kwok")
    environment = go.environment()
    for decided in ("CGO_ENABLED='0'", "GOWORK='off'", "GOTOOLCHAIN='local'", "GOFLAGS='-buildvcs=false'"):
        assert decided in environment
    assert "GOPROXY='https://proxy.invalid'" in environment


def test_another_checksum_than_the_pinned_one_stops_before_anything_is_built(
    toolchain: Toolchain, versions: Versions, go: FakeGo
) -> None:
    go.sums({"sigs.k8s.io/kueue@v0.19.2": "h1:other="})
    pinned = versions.release("kueue", "0.19.2").checksum
    for name in ("kueue", "kueue-sources"):
        with pytest.raises(ToolchainError, match="h1:other=") as caught:
            toolchain.ensure(versions.default, [name])
        assert pinned in str(caught.value)
        assert toolchain.have(name, versions.default) is None
    assert not go.calls("get")
    assert not go.calls("build")


def test_a_failed_build_leaves_nothing_and_shows_the_last_lines(
    toolchain: Toolchain, versions: Versions, go: FakeGo
) -> None:
    go.fail("build", "\n".join(f"line {number}" for number in range(40)))
    with pytest.raises(ToolchainError, match="line 39") as caught:
        toolchain.binary("kueue", versions.default)
    assert "line 3\n" not in str(caught.value)
    assert list((toolchain.store.root / "bin").iterdir()) == []
    go.recover()
    assert toolchain.binary("kueue", versions.default).exists()


def test_sources_are_copied_writable_and_laid_out_as_in_the_module(toolchain: Toolchain, versions: Versions) -> None:
    folder = toolchain.sources("kwok", versions.default)
    file = folder / "kustomize/stage/pod/file.yaml"
    assert file.read_text() == "kustomize/stage/pod"
    assert not (folder / "config").exists()
    for path in (file, file.parent):
        assert path.stat().st_mode & 0o200


@pytest.mark.timeout(60)
def test_a_second_builder_waits_for_the_first_and_uses_what_it_made(
    tmp_path: Path, versions: Versions, go: FakeGo
) -> None:
    go.block()
    paths: list[Path] = []
    waiting = threading.Event()
    said: list[str] = []

    def build(log: list[str]) -> None:
        def tell(line: str) -> None:
            log.append(line)
            if "waiting" in line:
                waiting.set()

        paths.append(Toolchain(versions, tmp_path / "cache", tell).binary("etcd", versions.default))

    first = threading.Thread(target=build, args=([],), daemon=True)
    second = threading.Thread(target=build, args=(said,), daemon=True)
    first.start()
    with (go.home / "started").open("rb", buffering=0) as started:
        assert started.read(1) == b"x"
        second.start()
        assert waiting.wait(30)
        (go.home / "release").open("w").close()
        first.join(30)
        second.join(30)
    assert len(paths) == 2
    assert paths[0] == paths[1]
    assert len(go.calls("build")) == 1
    assert any("etcd-3.6.8 is being made by another process" in line for line in said)


def test_what_does_not_exist_is_named_with_what_does(toolchain: Toolchain, versions: Versions) -> None:
    with pytest.raises(UsageError, match="kube-scheduler"):
        toolchain.binary("kube-dns", versions.default)
    with pytest.raises(UsageError, match="kueue, kuberay, kwok"):
        toolchain.sources("etcd", versions.default)
    with pytest.raises(UsageError, match="kwok-sources"):
        toolchain.have("etcd-sources", versions.default)
