"""What the parts of the air-gapped path are made of: names, files, sources, the machine that they need."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ci.airgap import preflight
from ci.airgap.kubernetes import BINARIES, OWN, references
from ci.airgap.node import node_files
from ci.airgap.operators import reference
from ci.airgap.places import SOURCES
from ci.airgap.programs import REQUIRES, digest, program
from raykueue.errors import InfraError, ToolchainError
from raykueue.toolchain.lock import load_versions

LISTED = [f"registry.invalid/{name}:v1" for name in BINARIES] + [
    "registry.invalid/coredns/coredns:v2",
    "x.invalid/pause:3",
]


def test_kubeadms_images_are_told_apart_by_their_last_name() -> None:
    found = references(LISTED)
    assert found["coredns"] == "registry.invalid/coredns/coredns:v2"
    assert set(found) == {*BINARIES, *OWN}


@pytest.mark.parametrize("lines", [LISTED[1:], [*LISTED, "registry.invalid/new-thing:v1"]])
def test_images_that_nobody_builds_here_are_said(lines: list[str]) -> None:
    with pytest.raises(ToolchainError, match="expected"):
        references(lines)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("registry.invalid/staging/kueue:main", "registry.invalid/staging/kueue:v1.2.3"),
        ("registry.invalid:5000/operator", "registry.invalid:5000/operator:v1.2.3"),
        ("operator", "operator:v1.2.3"),
    ],
)
def test_a_manifests_image_gets_the_tag_of_the_release(named: str, expected: str) -> None:
    assert reference(named, "v1.2.3") == expected


@pytest.fixture
def kind(tmp_path: Path) -> Path:
    root = tmp_path / "kind"
    files = {
        "etc/containerd/config.toml": 'a\nsandbox_image = "pause:old"\nb\n',
        "etc/systemd/system/kubelet.service": "unit",
        "etc/systemd/system/undo-mount-hacks.service": "unit",
        "usr/local/bin/entrypoint": "script",
        "kind/bin/tool.sh": "script",
        "LICENSES/README": "text",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
        (root / name).chmod(0o444)
    return root


def test_a_node_has_kinds_files_and_ours(kind: Path, tmp_path: Path) -> None:
    target = tmp_path / "files"
    node_files(kind, "pause:new", {"kind/version": "v9", "@IMAGE@": "nodenet:7"}, target)
    assert (target / "etc/containerd/config.toml").read_text() == 'a\nsandbox_image = "pause:new"\nb\n'
    assert (target / "kind/version").read_text() == "v9"
    assert 'image: "nodenet:7"' in (target / "kind/manifests/default-cni.yaml").read_text()
    assert not (target / "LICENSES").exists()
    assert not (target / "etc/systemd/system/undo-mount-hacks.service").exists()
    for script in ("usr/local/bin/entrypoint", "usr/local/bin/into-init", "kind/bin/tool.sh"):
        assert os.access(target / script, os.X_OK)


def test_a_configuration_of_kind_that_is_not_understood_is_an_error(kind: Path, tmp_path: Path) -> None:
    (kind / "etc/containerd/config.toml").chmod(0o644)
    (kind / "etc/containerd/config.toml").write_text("nothing")
    with pytest.raises(ToolchainError, match="0 sandbox images"):
        node_files(kind, "pause:new", {"kind/version": "v9", "@IMAGE@": "nodenet:7"}, tmp_path / "files")


def test_sources_are_another_when_a_file_its_name_or_its_mode_is(tmp_path: Path) -> None:
    def sources(name: str, content: str, mode: int) -> str:
        folder = tmp_path / "sources"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / name).write_text(content)
        (folder / name).chmod(mode)
        return digest(folder)

    first = sources("main.go", "x", 0o644)
    assert sources("main.go", "x", 0o640) == first
    assert (
        len({first, sources("main.go", "y", 0o644), sources("b.go", "x", 0o644), sources("main.go", "x", 0o755)}) == 4
    )


def test_every_program_has_sources_and_is_built_with_pinned_modules() -> None:
    versions = load_versions()
    assert {path.name for path in (SOURCES / "go").iterdir()} == set(REQUIRES)
    part = program("coredns", versions, versions.default)
    assert part.artifact.facts["requires"][1:] == ["v1.12.1", versions.release("coredns", "1.12.1").checksum]
    assert program("pause", versions, versions.default).artifact.facts["requires"] == []


def test_all_that_is_missing_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(preflight, "GIGABYTES", 1e9)
    with pytest.raises(InfraError) as caught:
        preflight.check(tmp_path / "not/yet/there", commands={"no-such-command": "its-package", "sh": "dash"})
    message = str(caught.value)
    assert "not root" in message
    assert "apt-get install --no-install-recommends its-package\n" in message
    assert f"{tmp_path} has " in message
    assert "RAYKUEUE_CACHE" in message


def test_a_machine_that_has_everything_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(preflight, "GIGABYTES", 0.0)
    preflight.check(tmp_path, commands={"sh": "dash"})
