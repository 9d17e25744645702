"""`raykueue report`: shows a saved report, and exits as the run did."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import sys
from pathlib import Path

from raykueue.report.files import LATEST
from raykueue.report.reading import load
from raykueue.report.run_info import LoadedReport
from raykueue.report.summary import markdown
from raykueue.report.terminal import terminal, wants_colour

_DEFAULT = Path("reports") / LATEST
_MAX_WIDTH = 120
"""Columns: longer lines are hard to read."""

_DESCRIPTION = """\
Shows the report of a run that has finished, after checking that it is complete and unchanged.

The exit code is the run's own: 0 green or only known defects, 1 a product failure or a recorded defect that no
longer shows, 2 interrupted, 3 not judged (also: the report is damaged, or the run never finished), 5 nothing ran.
"""
_EXAMPLES = """\
examples:
  raykueue report                                    the latest run, on the terminal
  raykueue report reports/20261105T101502Z-…         another run
  raykueue report --format markdown >> "$GITHUB_STEP_SUMMARY"
  raykueue report --format json | jq '.records[] | select(.verdict == "fail") | .id'
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the sub-command; its namespace has `run`, which takes the arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "report",
        help="show the report of a finished run",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", type=Path, default=_DEFAULT, help=f"the report's folder ({_DEFAULT})"
    )
    parser.add_argument("--format", choices=("text", "markdown", "json"), default="text", help="(text)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the report that the arguments name.

    Raises:
        ReportError: there is no such report, or it can't be trusted.
    """
    report = load(arguments.folder)
    text = {"text": _text, "markdown": markdown, "json": _json}[arguments.format](report)
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "replace").decode(encoding), end="")
    return report.run.exit_code


def _text(report: LoadedReport) -> str:
    width = min(shutil.get_terminal_size((80, 24)).columns, _MAX_WIDTH)
    shown = dataclasses.replace(report, folder=_from_here(report.folder))
    return terminal(shown, width, wants_colour(sys.stdout.isatty(), os.environ))


def _json(report: LoadedReport) -> str:
    records = [record.to_dict() for record in report.records]
    return json.dumps({"run": json.loads(report.run.encode()), "records": records}, indent=2) + "\n"


def _from_here(folder: Path) -> Path:
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder
