"""A workshop with a cache of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci.airgap.workshop import Workshop
from raykueue.toolchain.lock import load_versions


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def shop(tmp_path: Path, log: list[str]) -> Workshop:
    versions = load_versions()
    return Workshop(versions, versions.default, tmp_path / "cache", log.append)
