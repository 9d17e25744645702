#!/usr/bin/env python3
"""Checks the types of the scripts that are named; modules are checked by `mypy` alone (pyproject.toml).

mypy knows a script by its bare name, so of two that are called the same each has a run of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ci.support.paths import BIN, ROOT


def main(scripts: list[str]) -> int:
    """Returns mypy's exit code, the worst of all runs."""
    runs: list[list[str]] = []
    for script in scripts:
        name = Path(script).name
        fitting = [run for run in runs if all(Path(other).name != name for other in run)]
        if not fitting:
            runs.append([])
        (fitting or runs[-1:])[0].append(script)
    command = [str(BIN / "mypy"), "--scripts-are-modules"]
    return max((subprocess.run([*command, *run], cwd=ROOT, check=False).returncode for run in runs), default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
