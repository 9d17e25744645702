"""Runs of the suites whose reports are read afterwards."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ci.support.paths import BIN, ROOT
from raykueue.report.reading import load
from raykueue.report.run_info import LoadedReport


@dataclass(frozen=True)
class SuiteRun:
    """One run of pytest."""

    seconds: float
    """From the command to its end."""
    code: int
    report: LoadedReport


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for state and reports, gone afterwards. Short, since sockets are in it."""
    with tempfile.TemporaryDirectory(prefix="rk-") as folder:
        yield Path(folder)


def run_suites(folder: Path, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> SuiteRun:
    """Runs pytest with these arguments; state and report go into `folder`.

    Raises:
        SystemExit: pytest ended without a report; its output is shown.
    """
    reports = Path(tempfile.mkdtemp(prefix="report-", dir=folder))
    began = time.monotonic()
    ended = subprocess.run(
        [str(BIN / "pytest"), *arguments, f"--report-dir={reports}"],
        cwd=ROOT,
        env={**os.environ, "RAYKUEUE_STATE": str(folder / "state"), **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    if not (reports / "latest" / "run.json").exists():
        print(ended.stdout)
        raise SystemExit(ended.returncode or 1)
    return SuiteRun(seconds, ended.returncode, load(reports / "latest"))
