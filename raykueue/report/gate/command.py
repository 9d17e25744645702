"""`raykueue gate`: may these results be released upon?"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import raykueue
from raykueue.audit.explanations import Allowance, KnownIssue
from raykueue.audit.tables import read_allowances, read_known_issues
from raykueue.errors import UsageError
from raykueue.model.versions import Pair, Versions
from raykueue.model.versions import parse as parse_versions
from raykueue.report.errors import ReportError
from raykueue.report.gate.belonging import Suite
from raykueue.report.gate.decision import Question, decide
from raykueue.report.gate.evidence import gather
from raykueue.report.gate.required import Required, parse
from raykueue.report.gate.summary import markdown
from raykueue.report.gate.text import text
from raykueue.report.provenance import commit_of, suite_version

_REQUIRED = Path("ci/required.toml")

_DESCRIPTION = """\
Reads reports, and says whether what they show is enough to release upon: every required test ran on every required
pair, nothing failed, nothing is unexplained, nothing could not be found out, no known issue is overdue or has vanished,
and nothing that the baseline covered is uncovered now.

A folder is a report, or has reports below it; shards of one run are put together. Reports that are empty, unfinished,
damaged, of another suite, of a changed one or of other pins are refused. Digests show damage, not forgery.
"""
_EXAMPLES = """\
examples:
  raykueue gate reports/latest                                 the default gate, on the last run
  raykueue gate shard-1 shard-2 --gate nightly --baseline last-night
  raykueue gate reports --gate release --pair 0.19.2+1.6.2     Kueue + KubeRay
  raykueue gate reports --summary "$GITHUB_STEP_SUMMARY"       Markdown, appended

Exit codes: 0 open; 1 something failed, is unexplained, overdue or has vanished; 3 something is missing, damaged or was
not found out; 4 the reports don't belong together, or not to this gate; 5 nothing ran.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the sub-command; its namespace has `run`, which takes the arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "gate",
        help="say whether reports are enough to release upon",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folders", metavar="REPORT_DIR", nargs="+", type=Path, help="reports, or folders with reports")
    parser.add_argument("--baseline", metavar="DIR", type=Path, help="reports of before, to compare with")
    parser.add_argument("--gate", metavar="NAME", help="one of those in the file of --required (its default)")
    parser.add_argument("--pair", metavar="KUEUE+KUBERAY", action="append", default=[], help="for gates of named pairs")
    parser.add_argument(
        "--required", metavar="FILE", type=Path, default=_REQUIRED, help=f"what gates require ({_REQUIRED})"
    )
    parser.add_argument(
        "--allow-other-commits",
        action="store_true",
        help="count reports of another commit than this gate's, of a changed suite or of an unknown one; it is told",
    )
    parser.add_argument("--summary", metavar="FILE", type=Path, help="append the answer as Markdown, 800 KiB at most")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the answer, and returns the gate's exit code.

    Raises:
        UsageError: the file of requirements, the gate or a pair can't be understood.
        ReportError: the summary can't be written.
    """
    versions = _versions()
    question = Question(
        gate=_required(arguments.required).gate(arguments.gate),
        suite=Suite(versions, suite_version(), commit_of(Path(raykueue.__file__)), arguments.allow_other_commits),
        issues=tuple(_known_issues()),
        allowances=tuple(_allowances()),
        now=_now(),
        named=tuple(_pair(text, versions) for text in arguments.pair),
    )
    baseline = gather([arguments.baseline]) if arguments.baseline is not None else None
    decision = decide(question, gather(arguments.folders), baseline)
    if arguments.summary is not None:
        _append(arguments.summary, markdown(decision))
    encoding = sys.stdout.encoding or "utf-8"
    print(text(decision).encode(encoding, "replace").decode(encoding), end="")
    return decision.exit_code


def _required(path: Path) -> Required:
    try:
        return parse(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: what a gate requires can't be read ({error}); --required names the file") from error


def _pair(text: str, versions: Versions) -> Pair:
    kueue, plus, kuberay = text.partition("+")
    if not (kueue and plus and kuberay):
        raise UsageError(
            f"pair {text!r}: expected KUEUE+KUBERAY, as {versions.default.kueue}+{versions.default.kuberay}"
        )
    return versions.pair(kueue, kuberay)


def _versions() -> Versions:
    return parse_versions(_text("versions.toml"))


def _known_issues() -> list[KnownIssue]:
    try:
        return read_known_issues(_text("known-issues.toml"))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _allowances() -> list[Allowance]:
    try:
        return read_allowances(_text("allowances.toml"))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _now() -> datetime:
    return datetime.now(UTC)


def _text(name: str) -> str:
    return resources.files("raykueue").joinpath(name).read_text(encoding="utf-8")


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ReportError(f"{path}: the summary can't be written ({error})") from error
