"""Manifests as files that a user would write, in the project's `manifests/` folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from raykueue.errors import UsageError

FOLDER = Path(__file__).resolve().parents[2] / "manifests"


def load(name: str, folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Every document of one file.

    Raises:
        UsageError: there is no such file; the message lists those that exist.
    """
    path = folder / name
    if not path.is_file():
        known = ", ".join(sorted(str(file.relative_to(folder)) for file in folder.rglob("*.yaml")))
        raise UsageError(f"manifest {name} does not exist in {folder.name}/; there are: {known}")
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def load_one(name: str, kind: str, folder: Path = FOLDER) -> dict[str, Any]:
    """The only document of this kind in one file.

    Raises:
        UsageError: there is none, or there are several.
    """
    found = [document for document in load(name, folder) if document["kind"] == kind]
    if len(found) != 1:
        raise UsageError(f"manifest {name} has {len(found)} {kind}s, expected one")
    return found[0]
