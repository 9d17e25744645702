from __future__ import annotations

from pathlib import Path

import pytest

from raykueue.errors import UsageError
from raykueue.toolchain.lock import load_versions


def test_the_packages_own_file_pins_the_default_pair() -> None:
    versions = load_versions()
    assert versions.default.klass == "pinned"
    assert versions.default in versions.pairs
    assert len({versions.digest(pair) for pair in versions.pairs}) == len(versions.pairs)


def test_another_file_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"other\.toml: No such file"):
        load_versions(tmp_path / "other.toml")
    (tmp_path / "other.toml").write_text("recipe = 1")
    with pytest.raises(UsageError, match=r"other\.toml: .*missing"):
        load_versions(tmp_path / "other.toml")
