"""mypy leaves nothing out: what it is not told of it does not look at, and says nothing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.ci.scripts import ROOT, load

MADE = ("allure-results", "build", "dist", "reports")
"""Folders that are not in the repository (.gitignore)."""
NO_REASON = re.compile(r"#\s*type: ignore(?!\[[^]]+\]\s+# \w)")


def modules() -> list[Path]:
    """Every module of the repository, relative to it."""
    folders = [one for one in ROOT.iterdir() if one.is_dir() and one.name not in MADE and not one.name.startswith(".")]
    found = [*ROOT.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))]
    return sorted(path.relative_to(ROOT) for path in found)


def test_every_module_is_checked() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    named = {*about["packages"], *about["modules"]}
    assert [str(path) for path in modules() if path.parts[0].removesuffix(".py") not in named] == []
    # A folder whose name is no name in Python is no package, and neither is what is below it.
    names = {part.removesuffix(".py") for path in modules() for part in path.parts}
    assert [name for name in sorted(names) if not name.isidentifier()] == []


def test_every_ignore_has_its_reason_beside_it() -> None:
    files = [*(str(path) for path in modules()), *load("test").scripts()]
    lines = [(file, line) for file in files for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    assert [f"{file}: {line.strip()}" for file, line in lines if NO_REASON.search(line)] == []
