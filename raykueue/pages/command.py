"""`raykueue docs`: writes the pages that are generated."""

from __future__ import annotations

import argparse
from pathlib import Path

from raykueue.errors import EXIT_FAILED, EXIT_OK, UsageError
from raykueue.pages import support
from raykueue.pages.deletion_policies import page
from raykueue.pages.results import merged, of_report, read, write
from raykueue.report.gate.evidence import gather
from raykueue.report.reading import load
from raykueue.toolchain.lock import load_versions

FOLDER = Path(__file__).resolve().parents[2] / "docs"
PAGE, README = "deletion-policies.md", "README.md"
RESULTS, LAST = "deletion-policies.json", "support.json"

_EXAMPLES = """\
examples:
  raykueue docs deletion-policies                        write docs/deletion-policies.md anew
  raykueue docs deletion-policies --from reports/latest  take over the results of a run first
  raykueue docs support --from reports/matrix-…          take over what each pair came to, into the README's table
  raykueue docs support --check                          say whether it is current, and change nothing
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
    parser.add_argument("page", choices=("deletion-policies", "support"))
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--from", dest="report", metavar="DIR", type=Path, help="a report whose results are taken over")
    what.add_argument("--check", action="store_true", help="exit with 1 if the page is not current")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, folder: Path = FOLDER) -> int:
    """Writes or checks the page.

    Raises:
        ReportError: there is no such report, or it can't be trusted.
        UsageError: the report has nothing that belongs into the page.
    """
    if arguments.page == "support":
        if arguments.report is not None:
            _take_over_support(arguments.report, folder)
        return _put(arguments, folder.parent / README, support_table(folder), f"{README} (the table of pairs)")
    if arguments.report is not None:
        pair, results = of_report(load(arguments.report))
        known = read(_text(folder / RESULTS) or "{}")
        (folder / RESULTS).write_text(write(merged(known, pair, results)), encoding="utf-8")
    return _put(arguments, folder / PAGE, deletion_policies(folder), f"{folder.name}/{PAGE}")


def deletion_policies(folder: Path = FOLDER) -> str:
    """The page as it should be now."""
    versions = load_versions()
    results = read(_text(folder / RESULTS) or "{}")
    return page([pair.versions() for pair in versions.pairs], versions.default.versions(), results)


def support_table(folder: Path = FOLDER) -> str:
    """The README as it should be now."""
    last = support.read(_text(folder / LAST))
    return support.into(_text(folder.parent / README), support.table(load_versions(), last))


def _take_over_support(source: Path, folder: Path) -> None:
    found = gather([source])
    if found.refusals:
        refusal = found.refusals[0]
        raise UsageError(f"{refusal.where}: {refusal.why}; only whole results are taken over")
    known = support.read(_text(folder / LAST))
    (folder / LAST).write_text(support.write({**known, **support.last_of(found.reports)}), encoding="utf-8")


def _put(arguments: argparse.Namespace, path: Path, text: str, name: str) -> int:
    current = _text(path) == text
    if arguments.check:
        print(f"{name} is current" if current else f"{name} is not current: write it anew")
        return EXIT_OK if current else EXIT_FAILED
    path.write_text(text, encoding="utf-8")
    print(f"{name} {'was current' if current else 'is written'}")
    return EXIT_OK


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
