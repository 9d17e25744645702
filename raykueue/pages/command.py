"""`raykueue docs`: writes the pages that are generated."""

from __future__ import annotations

import argparse
from pathlib import Path

from raykueue.errors import EXIT_FAILED, EXIT_OK
from raykueue.pages.deletion_policies import page
from raykueue.pages.results import merged, of_report, read, write
from raykueue.report.reading import load
from raykueue.toolchain.lock import load_versions

FOLDER = Path(__file__).resolve().parents[2] / "docs"
PAGE = "deletion-policies.md"
RESULTS = "deletion-policies.json"

_EXAMPLES = """\
examples:
  raykueue docs deletion-policies                        write docs/deletion-policies.md anew
  raykueue docs deletion-policies --from reports/latest  take over the results of a run first
  raykueue docs deletion-policies --check                say whether it is current, and change nothing
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the sub-command; its namespace has `run`, which takes the arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "docs",
        help="write the pages that are generated",
        description="Writes the pages that are generated.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("page", choices=("deletion-policies",))
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--from", dest="report", metavar="DIR", type=Path, help="a report whose results are taken over")
    what.add_argument("--check", action="store_true", help="exit with 1 if the page is not current")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, folder: Path = FOLDER) -> int:
    """Writes or checks the page.

    Raises:
        ReportError: there is no such report, or it can't be trusted.
        UsageError: the report has nothing of the deletion table.
    """
    if arguments.report is not None:
        pair, results = of_report(load(arguments.report))
        known = read(_text(folder / RESULTS) or "{}")
        (folder / RESULTS).write_text(write(merged(known, pair, results)), encoding="utf-8")
    text = deletion_policies(folder)
    current = _text(folder / PAGE) == text
    if arguments.check:
        print(f"{folder.name}/{PAGE} is current" if current else f"{folder.name}/{PAGE} is not current: write it anew")
        return EXIT_OK if current else EXIT_FAILED
    (folder / PAGE).write_text(text, encoding="utf-8")
    print(f"{folder.name}/{PAGE} {'was current' if current else 'is written'}")
    return EXIT_OK


def deletion_policies(folder: Path = FOLDER) -> str:
    """The page as it should be now."""
    versions = load_versions()
    results = read(_text(folder / RESULTS) or "{}")
    return page([pair.versions() for pair in versions.pairs], versions.default.versions(), results)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
