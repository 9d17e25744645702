#!/usr/bin/env python3
"""Holds the workflows against actionlint and zizmor: 0 clean, 1 one of them objects, 3 one of them can't work.

actionlint ends with 1 if it objects, with 2 or 3 if it can't work. zizmor ends with 11 to 14 if it objects, by the
severity of what it found, and with 1 or 2 if it can't work.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ci.support.paths import BIN, ROOT

FAILED = 1
INFRA = 3
ACTIONLINT_OBJECTS = frozenset({1})
ZIZMOR_OBJECTS = frozenset({11, 12, 13, 14})


def main(folder: Path = ROOT) -> int:
    """Returns the exit code."""
    found = subprocess.run(
        [str(BIN / "raykueue"), "toolchain", "path", "actionlint"], stdout=subprocess.PIPE, text=True, check=False
    )
    if found.returncode != 0:
        return INFRA
    # Without programs that may happen to be installed here: what is clean must not depend on the machine.
    actionlint = [found.stdout.strip(), "-shellcheck=", "-pyflakes="]
    zizmor = [str(BIN / "zizmor"), "--quiet", "--offline", "--pedantic", "--strict-collection", ".github"]
    codes = [outcome(actionlint, folder, ACTIONLINT_OBJECTS), outcome(zizmor, folder, ZIZMOR_OBJECTS)]
    return FAILED if FAILED in codes else max(codes)


def outcome(command: Sequence[str], folder: Path, objects: frozenset[int]) -> int:
    """Runs it in a repository, with its output on the screen: 0, FAILED or INFRA."""
    try:
        code = subprocess.run(command, cwd=folder, check=False).returncode
    except OSError as error:
        print(f"{command[0]} can't be started: {error}", file=sys.stderr)
        return INFRA
    return 0 if code == 0 else FAILED if code in objects else INFRA


if __name__ == "__main__":
    sys.exit(main())
