"""docker and kind as a script that writes down how it was called, and answers what a test says."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

ALWAYS = 1000
_SCRIPT = """#!{python}
import json, os, pathlib, sys, time
folder = pathlib.Path({folder!r})
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
kept = {{key: os.environ[key] for key in ("KUBECONFIG", "KIND_EXPERIMENTAL_DOCKER_NETWORK") if key in os.environ}}
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps([name, *words]) + "\\n")
with (folder / "environments").open("a") as calls:
    calls.write(json.dumps(kept) + "\\n")
rules = json.loads((folder / "rules").read_text())
for number, rule in enumerate(rules):
    if all(word in words for word in rule["words"]) and rule["times"]:
        if rule["times"] < {always}:  # tests with such rules make one call at a time
            rule["times"] -= 1
            (folder / "rules").write_text(json.dumps(rules))
        if rule["makes"]:
            pathlib.Path(words[words.index(rule["makes"]) + 1]).write_text("made")
        time.sleep(rule["seconds"])
        print(rule["out"])
        print(rule["err"], file=sys.stderr)
        sys.exit(rule["code"])
"""


class Tools:
    """A folder in the PATH with both."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self._rules: list[dict[str, Any]] = []
        self._write()
        for name in ("docker", "kind", "kubectl"):
            script = folder / name
            script.write_text(_SCRIPT.format(python=sys.executable, folder=str(folder), always=ALWAYS))
            script.chmod(0o755)
        self.path = f"{folder}{os.pathsep}{os.environ['PATH']}"

    def answer(
        self,
        *words: str,
        out: str = "",
        err: str = "",
        code: int = 0,
        times: int = ALWAYS,
        seconds: float = 0.0,
        makes: str = "",
    ) -> None:
        """For calls with all these words; the first rule that fits, and was not used up, counts.

        `makes`: the word before the path of a file that the call writes.
        """
        rule = {"words": list(words), "out": out, "err": err, "code": code, "times": times}
        self._rules.append({**rule, "seconds": seconds, "makes": makes})
        self._write()

    @property
    def calls(self) -> list[list[str]]:
        """Every call so far."""
        return _lines(self.folder / "calls")

    @property
    def environments(self) -> list[dict[str, str]]:
        """What each call saw of a kubeconfig and a network."""
        return _lines(self.folder / "environments")

    def _write(self) -> None:
        (self.folder / "rules").write_text(json.dumps(self._rules))


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
