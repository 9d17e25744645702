"""A toolchain whose Go client builds nothing, alone on the PATH."""

from __future__ import annotations

from pathlib import Path

import pytest

from raykueue.model.versions import Versions
from raykueue.toolchain.builder import Toolchain
from raykueue.toolchain.lock import load_versions
from tests.toolchain.fake_go import FakeGo


@pytest.fixture
def versions() -> Versions:
    return load_versions()


@pytest.fixture
def go(tmp_path: Path, versions: Versions, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    fake = FakeGo(tmp_path / "fake")
    fake.install()
    fake.version("1.26.8")
    fake.sums({f"{release.module}@{release.tag}": release.checksum for release in versions.releases})
    monkeypatch.setenv("PATH", str(fake.path.parent))
    return fake


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def toolchain(tmp_path: Path, versions: Versions, go: FakeGo, log: list[str]) -> Toolchain:
    return Toolchain(versions, tmp_path / "cache", log.append)
