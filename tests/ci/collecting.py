"""What the suites collect, as pytest says it: for every Kueue with one KubeRay, and for some profiles, in one process.

    collecting.py KUBERAY PROFILE…

prints a JSON list of collections. Each further one takes 0.2 s, which are 3 s in a process of its own.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from raykueue.run.manifests import FOLDER, load
from raykueue.run.rows import Case
from raykueue.toolchain.lock import load_versions


class Collector:
    """Keeps what was collected."""

    def __init__(self) -> None:
        self.tests: list[dict[str, Any]] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        from fixtures.gates import _refusals  # a plugin, which pytest must be the first to import

        for item in session.items:
            assert isinstance(item, pytest.Function)
            rayjobs = [job["spec"] for job in _rayjobs(item)]
            absences = [*_refusals(item)]
            self.tests.append({"id": item.nodeid, "absences": absences, "rayjobs": rayjobs})


def _rayjobs(item: pytest.Function) -> Iterator[Mapping[str, Any]]:
    """Those that a test submits: the row of a table that it gets, and the files that it, or its parameters, name."""
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    named = {one for one in (*item.function.__code__.co_consts, *given) if isinstance(one, str)}
    yield from (one.manifest() for one in given if isinstance(one, Case))
    for file in sorted(named):
        if file.endswith(".yaml") and (FOLDER / file).is_file():
            yield from (document for document in load(file) if document["kind"] == "RayJob")


def collected(kueue: str, kuberay: str, profile: str) -> dict[str, Any]:
    collector = Collector()
    options = [f"--profile={profile}", f"--kueue={kueue}", f"--kuberay={kuberay}", "-n", "0", "-p", "no:cacheprovider"]
    with contextlib.redirect_stdout(sys.stderr):
        code = pytest.main(["suites", "--collect-only", "-q", *options], plugins=[collector])
    assert code == 0, f"pytest ended with {code}"
    return {"kueue": kueue, "profile": profile, "tests": collector.tests}


if __name__ == "__main__":
    kuberay, *profiles = sys.argv[1:]
    every = [pair.kueue for pair in load_versions().pairs if pair.kuberay == kuberay]
    sys.stdout.write(json.dumps([collected(kueue, kuberay, profile) for kueue in every for profile in profiles]))
