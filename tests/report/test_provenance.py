from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from raykueue.report.provenance import commit_of, suite_version


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    (tmp_path / "tracked.py").write_text("1\n")
    for command in (["init", "-q"], ["add", "tracked.py"], [*identity, "commit", "-q", "-m", "First"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    return tmp_path


def test_a_tracked_file_has_the_commit_of_its_repository(repository: Path) -> None:
    assert re.fullmatch("[0-9a-f]{40}", commit_of(repository / "tracked.py"))


def test_a_changed_repository_is_called_dirty(repository: Path) -> None:
    (repository / "tracked.py").write_text("2\n")
    assert re.fullmatch("[0-9a-f]{40}-dirty", commit_of(repository / "tracked.py"))


def test_a_file_that_the_repository_does_not_track_has_no_commit(repository: Path) -> None:
    (repository / "installed.py").write_text("")
    assert commit_of(repository / "installed.py") == ""


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(tmp_path / "x.py") == ""


def test_the_version_of_an_installed_suite_is_a_version() -> None:
    assert re.fullmatch(r"(\d+\.\d+.*)?", suite_version())
