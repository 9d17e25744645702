"""How an acceptance script works: a fresh clone, its checks one after another, one table at the end."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ci.acceptance.ground import Ground, Miss
from ci.support.machine import machine
from ci.support.paths import ROOT
from ci.support.table import table
from raykueue.errors import EXIT_INTERRUPTED

Check: TypeAlias = Callable[[Ground], str]

LINES = 40
"""Of a command's output, when its check missed."""


@dataclass(frozen=True)
class Result:
    """How a check ended."""

    sentence: str
    missed: bool
    seconds: float
    detail: str


def main(about: str, checks: Sequence[Check]) -> int:
    """Carries out those that the command line names; returns the exit code.

    Args:
        about: the docstring of the script, for --help.
        checks: its checks, in order; their names are sentences.
    """
    arguments = ask(about, checks)
    # Whatever is interrupted ends and removes what it has started. What is tried must not inherit a signal that is
    # ignored, as in the background of a shell or under nohup: it would be deaf as well.
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda *_: sys.exit(EXIT_INTERRUPTED))
    chosen = [check for check in checks if not arguments.only or any(part in name(check) for part in arguments.only)]
    if not chosen:
        print(f"no check is named like {' or '.join(arguments.only)}; --list shows them", file=sys.stderr)
        return 4
    print(machine())
    with tempfile.TemporaryDirectory(prefix="rk-", ignore_cleanup_errors=True) as folder:
        base = Path(folder)
        root = ROOT if arguments.here else clone(base / "clone")
        ground = Ground(root, base / "s", base / "t", arguments.log.absolute())
        ground.log.parent.mkdir(parents=True, exist_ok=True)
        ground.log.write_text("")
        results = []
        try:
            for number, check in enumerate(chosen, 1):
                results.append(carry_out(ground, check))
                show(results[-1], number, len(chosen), ground)
        finally:
            ground.clean()
    rows = [(one.sentence, "MISS" if one.missed else "ok", f"{one.seconds:.0f}", one.detail) for one in results]
    print("\n" + table(("CHECK", "RESULT", "SECONDS", "DETAIL"), rows, ("SECONDS",)))
    missed = sum(one.missed for one in results)
    print(f"\n{len(results) - missed} passed, {missed} failed; all output is in {arguments.log}")
    return 1 if missed else 0


def ask(about: str, checks: Sequence[Check]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PART", action="append", default=[], help="of a check's name; repeatable")
    parser.add_argument("--here", action="store_true", help="no clone: this tree and its .venv, as they are")
    log = Path("build/acceptance.log")
    parser.add_argument("--log", metavar="FILE", type=Path, default=log, help=f"for what commands print ({log})")
    parser.add_argument("--list", action="store_true", help="show the checks and exit")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(name(check) for check in checks))
        raise SystemExit(0)
    return arguments


def clone(folder: Path) -> Path:
    """A fresh clone, set up."""
    subprocess.run(["git", "clone", "--quiet", "--no-local", str(ROOT), str(folder)], check=True)
    subprocess.run([sys.executable, "ci/setup"], cwd=folder, check=True)
    return folder


def carry_out(ground: Ground, check: Check) -> Result:
    """Carries out one check, and looks what it has left."""
    ground.failed = ""
    began = time.monotonic()
    try:
        detail = check(ground)
        left = ground.left()
        if left:
            raise Miss(f"left behind: {', '.join(left)}")
        missed = False
    except Miss as miss:
        missed, detail = True, str(miss)
    except Exception as error:  # noqa: BLE001 - a check that can't be carried out is missed; the others go on
        missed, detail = True, f"the check itself failed: {error!r}"
        ground.failed = traceback.format_exc()
    seconds = time.monotonic() - began
    if missed:
        ground.clean()
    return Result(name(check).replace("_", " "), missed, seconds, " ".join(detail.split())[:120])


def show(result: Result, number: int, of: int, ground: Ground) -> None:
    """One line per check; if it missed, the end of what its last command said."""
    verdict = "MISS" if result.missed else "ok"
    print(f"[{number}/{of}] {verdict:4} {result.seconds:5.0f} s  {result.sentence}  {result.detail}", flush=True)
    if result.missed and ground.failed:
        print("\n".join(f"    {line}" for line in ground.failed.splitlines()[-LINES:]), flush=True)


def name(check: Check) -> str:
    """Of the function."""
    return check.__name__
