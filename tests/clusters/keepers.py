"""Components that do no harm, and what a keeper's state says of them."""

from __future__ import annotations

import json
import os

import psutil

from raykueue.clusters.embedded.keeping import Keeping
from raykueue.clusters.folder import ClusterFolder
from tests.clusters.processes import ends_with, sleeper

ENV = {"PATH": os.environ["PATH"]}


def start(keeping: Keeping, name: str, argv: list[str] | None = None) -> psutil.Process:
    """Starts a component that sleeps, unless it is told otherwise; it must still run when it is looked at."""
    return psutil.Process(keeping.start(name, argv or sleeper(), ENV, keeping.folder))


def start_dying(keeping: Keeping, name: str, words: str, code: int) -> None:
    """Starts a component that says something and ends at once, before anybody can look at it."""
    keeping.start(name, ends_with(words, code), ENV, keeping.folder)


def state(folder: ClusterFolder) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = json.loads((folder.path / "state.json").read_text())
    return found
