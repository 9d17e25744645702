from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from raykueue.report.provenance import commit_of, is_dirty, suite_version

CLEAN, DIRTY = re.compile("[0-9a-f]{40}"), re.compile("[0-9a-f]{40}-dirty-[0-9a-f]{12}")
FILES = ("raykueue/__init__.py", "raykueue/old.py", "suites/test_x.py", "docs/page.md")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package's __init__.py in a repository with one commit."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path / FILES[0]


def git(where: Path, *words: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(where), *identity, *words], check=True)


def commit(where: Path) -> None:
    git(where, "add", ".")
    git(where, "commit", "-q", "-m", "All")


def test_a_tracked_file_has_the_commit_of_its_repository(package: Path) -> None:
    assert CLEAN.fullmatch(commit_of(package))
    assert not is_dirty(commit_of(package))


def edited(root: Path) -> None:
    (root / "suites" / "test_x.py").write_text("2\n")


def edited_otherwise(root: Path) -> None:
    (root / "suites" / "test_x.py").write_text("3\n")


def staged(root: Path) -> None:
    (root / "docs" / "page.md").write_text("2\n")
    git(root, "add", ".")


def deleted(root: Path) -> None:
    (root / "raykueue" / "old.py").unlink()


def renamed(root: Path) -> None:
    git(root, "mv", "raykueue/old.py", "raykueue/new.py")


def made_executable(root: Path) -> None:
    (root / "suites" / "test_x.py").chmod(0o755)


def with_a_new_test(root: Path) -> None:
    (root / "suites" / "test_new.py").write_text("1\n")


def with_another_new_test(root: Path) -> None:
    (root / "suites" / "test_new.py").write_text("2\n")


def with_a_new_module(root: Path) -> None:
    (root / "raykueue" / "ä.py").write_text("1\n")


def with_settings_that_pytest_reads_first(root: Path) -> None:
    (root / "pytest.ini").write_text("[pytest]\n")


CHANGES = [
    edited, edited_otherwise, staged, deleted, renamed, made_executable,
    with_a_new_test, with_another_new_test, with_a_new_module, with_settings_that_pytest_reads_first,
]  # fmt: skip


def test_two_trees_that_were_changed_otherwise_are_called_otherwise(package: Path) -> None:
    root, clean = package.parents[1], commit_of(package)
    seen = {clean}
    for change in CHANGES:
        change(root)
        seen.add(commit_of(package))
        assert DIRTY.fullmatch(commit_of(package)), change
        assert is_dirty(commit_of(package))
        assert commit_of(package).startswith(f"{clean}-")
        git(root, "reset", "-q", "--hard")
        git(root, "clean", "-q", "-d", "--force")
        assert commit_of(package) == clean, change
    assert len(seen) == len(CHANGES) + 1


@pytest.mark.parametrize("change", CHANGES)
def test_the_same_change_is_called_the_same(package: Path, change: Callable[[Path], None]) -> None:
    change(package.parents[1])
    assert commit_of(package) == commit_of(package)


def test_what_no_run_loads_changes_nothing(package: Path) -> None:
    root, clean = package.parents[1], commit_of(package)
    (root / "evidence").mkdir()
    (root / "evidence" / "run.json").write_text("{}")
    (root / "notes.txt").write_text("look at this")
    (root / FILES[0]).touch()
    assert commit_of(package) == clean


def test_a_suite_within_a_bigger_repository_has_that_ones_commit(tmp_path: Path, package: Path) -> None:
    root = package.parents[1]
    inner = root / "vendor" / "suite" / "raykueue" / "__init__.py"
    inner.parent.mkdir(parents=True)
    inner.write_text("1\n")
    commit(root)
    assert CLEAN.fullmatch(commit_of(inner))
    (inner.parents[1] / "suites").mkdir()
    with_a_new_test(inner.parents[1])
    assert DIRTY.fullmatch(commit_of(inner))


def test_a_file_that_the_repository_does_not_track_has_no_commit(package: Path) -> None:
    (package.parent / "installed.py").write_text("")
    assert commit_of(package.parent / "installed.py") == ""


def test_without_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert commit_of(tmp_path / "raykueue" / "__init__.py") == ""


def test_without_git_there_is_no_commit(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(package.parent))
    assert commit_of(package) == ""


def test_the_version_of_an_installed_suite_is_a_version() -> None:
    assert re.fullmatch(r"(\d+\.\d+.*)?", suite_version())
