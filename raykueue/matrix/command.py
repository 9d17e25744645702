"""`raykueue matrix`: runs the suites on many pairs, lists them for a CI system, and puts shards together."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import raykueue
from raykueue.errors import EXIT_INFRA, EXIT_OK, UsageError
from raykueue.matrix.collecting import Collected, collect
from raykueue.matrix.github import jobs_by_pair, jobs_by_shard
from raykueue.matrix.grid import as_json, markdown, text, word
from raykueue.matrix.matrix_file import MATRIX, MatrixFile, Plan
from raykueue.matrix.outcome import Outcome, exit_code, outcomes
from raykueue.matrix.planning import plan_of
from raykueue.matrix.running import PAIR_SECONDS, Commands, Runner
from raykueue.matrix.selection import CLASSES, Shard, choose, short
from raykueue.model.versions import Pair
from raykueue.report.files import write
from raykueue.report.wording import duration, tally
from raykueue.run.explanations import known_issues
from raykueue.toolchain.lock import load_versions

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - the type has no public name

ROOT = Path(raykueue.__file__).resolve().parents[1]
SUMMARY, GRID = "summary.md", "grid.json"

_RUN = """\
Each pair runs in a cluster and a process of its own, and leaves a report of its own below DIR/pairs. Binaries that are
missing are built first. One bad pair never stops the others. ctrl-C ends what runs, with its reports.

examples:
  raykueue matrix run --profile smoke                      all pairs, one after another
  raykueue matrix run --pairs pinned                       core on the pairs that upstream pins
  raykueue matrix run --pairs 0.19.2+1.6.2,0.10.1+1.3.2    these (KUEUE+KUBERAY)
  raykueue matrix run --shard 1/2 --out part1              the first half; `collect` puts halves together
  raykueue matrix run --resume part1                       what it has not found out yet
  raykueue matrix run --pairs pinned -- -k preemption      whatever pytest takes
"""
_LIST = """\
examples:
  raykueue matrix list                                     every pair and its class
  raykueue matrix list --pairs supported --github          strategy.matrix of a GitHub Actions job, one job a pair
  raykueue matrix list --github --shards 7                 the same, one job a shard
"""
_COLLECT = """\
The verdict is made from the reports in DIR…, each checked again. Pairs of a shard that is missing are infra.

examples:
  raykueue matrix collect part1 part2 --out both
  raykueue matrix collect part1                            a finished run again
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `matrix` with its actions; each sets `run`, a function from the parsed arguments to an exit code."""
    matrix = subparsers.add_parser(
        "matrix",
        help="run the suites on many pairs of versions",
        description="Runs the suites on many pairs of versions, and tells what came of all of them.",
    )
    actions = matrix.add_subparsers(title="actions", metavar="ACTION", required=True)
    pairs = f"default|{'|'.join(CLASSES)}, or KUEUE+KUBERAY,…"

    running = _action(actions, "run", "run the suites on every pair", _RUN)
    running.add_argument("--pairs", metavar="WHICH", help=f"{pairs} (default: all)")
    running.add_argument("--profile", choices=tuple(PAIR_SECONDS), help="how much runs on each (default: core)")
    running.add_argument("--jobs", metavar="N", type=int, default=1, help="pairs side by side (default: 1)")
    running.add_argument("--shard", metavar="i/n", help="only every nth pair, from the ith on")
    where = running.add_mutually_exclusive_group()
    where.add_argument("--out", metavar="DIR", type=Path, help="a new folder (default: reports/matrix-TIME)")
    where.add_argument("--resume", metavar="DIR", type=Path, help="go on with what an earlier run has not found out")
    running.add_argument("arguments", metavar="-- PYTEST…", nargs="*", help="arguments of pytest")
    running.set_defaults(run=_run)

    listing = _action(actions, "list", "show the pairs", _LIST)
    listing.add_argument("--pairs", metavar="WHICH", default="all", help=f"{pairs} (default: all)")
    listing.add_argument("--github", action="store_true", help="as JSON for strategy.matrix")
    listing.add_argument("--shards", metavar="N", type=int, help="with --github: one job a shard")
    listing.set_defaults(run=_list)

    collecting = _action(actions, "collect", "put shards together", _COLLECT)
    collecting.add_argument("folders", metavar="DIR", nargs="+", type=Path, help="folders that `run` has written")
    collecting.add_argument("--out", metavar="DIR", type=Path, help=f"write {SUMMARY} and {GRID} there")
    collecting.set_defaults(run=_collect)


def _action(actions: Subparsers, name: str, what: str, examples: str) -> argparse.ArgumentParser:
    return actions.add_parser(
        name,
        help=what,
        description=what[0].upper() + what[1:] + ".",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _run(arguments: argparse.Namespace) -> int:
    if arguments.jobs < 1:
        raise UsageError(f"--jobs {arguments.jobs}: expected at least 1")
    if not (ROOT / "suites").is_dir():
        raise UsageError(f"there is no folder suites in {ROOT}: run this from a clone of the repository")
    matrix = _resumed(arguments) if arguments.resume else _new(arguments)
    told = f"{len(matrix.mine)} of {len(matrix.plan.pairs)} pairs (shard {matrix.shard})"
    print(f"raykueue: {told}, profile {matrix.plan.profile}, in {matrix.folder}", file=sys.stderr, flush=True)
    runner = Runner(
        matrix, _commands(matrix.plan), _tell, arguments.jobs, pair_seconds=PAIR_SECONDS[matrix.plan.profile]
    )
    done = runner.run()
    found = outcomes(done)
    _write(done.folder, found, done.plan, interrupted=done.interrupted)
    print(text(found, done.plan, interrupted=done.interrupted), end="")
    return exit_code(found, interrupted=done.interrupted)


def _new(arguments: argparse.Namespace) -> MatrixFile:
    versions = load_versions()
    pairs = choose(arguments.pairs or "all", versions)
    plan = plan_of(pairs, versions.default, arguments.profile or "core", arguments.arguments)
    shard = Shard.parse(arguments.shard) if arguments.shard else Shard()
    if not shard.part(pairs):
        raise UsageError(f"--shard {shard}: there are only {len(pairs)} pairs, so nothing is in it")
    out = arguments.out or Path("reports") / f"matrix-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    try:
        out.mkdir(parents=True)
    except FileExistsError as error:
        again = f"; `--resume {out}` goes on with it" if (out / MATRIX).exists() else ""
        raise UsageError(f"--out {out}: it exists, and a matrix needs a new folder{again}") from error
    except OSError as error:
        raise UsageError(f"--out {out}: it can't be made ({error.strerror})") from error
    return MatrixFile(out.resolve(), plan, shard)


def _resumed(arguments: argparse.Namespace) -> MatrixFile:
    given = [name for name in ("pairs", "profile", "shard", "arguments") if getattr(arguments, name)]
    if given:
        raise UsageError(f"--resume takes {', '.join(given)} from {arguments.resume}: leave them out")
    before = MatrixFile.load(arguments.resume)
    now = plan_of(before.plan.pairs, load_versions().default, before.plan.profile, before.plan.arguments)
    if different := before.plan.differences(now):
        raise UsageError(
            f"--resume {arguments.resume}: since then {', '.join(different)} changed, so what was found no longer "
            "counts: start a new matrix"
        )
    return MatrixFile(before.folder, before.plan, before.shard, before.results)


def _commands(plan: Plan) -> Commands:
    def versions(pair: Pair) -> list[str]:
        return ["--kueue", pair.kueue, "--kuberay", pair.kuberay, "--kubernetes", pair.kubernetes]

    chosen = [argument for argument in plan.arguments if (ROOT / argument.split("::")[0]).exists()]
    suites = [] if chosen else ["suites"]

    def test(pair: Pair, folder: Path) -> Sequence[str]:
        options = ["--profile", plan.profile, "--report-dir", str(folder)]
        return [sys.executable, "-m", "pytest", *suites, *plan.arguments, *versions(pair), *options]

    return Commands(
        build=lambda pair: [sys.executable, "-m", "raykueue.cli", "toolchain", "build", *versions(pair)],
        test=test,
        cwd=ROOT,
    )


def _list(arguments: argparse.Namespace) -> int:
    if arguments.shards is not None and not arguments.github:
        raise UsageError("--shards goes with --github")
    pairs = choose(arguments.pairs, load_versions())
    if not arguments.github:
        for pair in pairs:
            print(f"{short(pair):16}{pair.klass:13}on Kubernetes {pair.kubernetes}")
    elif arguments.shards is None:
        print(json.dumps(jobs_by_pair(pairs)))
    else:
        print(json.dumps(jobs_by_shard(pairs, arguments.shards)))
    return EXIT_OK


def _collect(arguments: argparse.Namespace) -> int:
    found = collect(arguments.folders)
    if arguments.out is not None:
        arguments.out.mkdir(parents=True, exist_ok=True)
        _write(arguments.out, found.outcomes, found.plan, interrupted=found.interrupted)
    print(text(found.outcomes, found.plan, interrupted=found.interrupted), end="")
    for problem in found.problems:
        print(f"raykueue: {problem}", file=sys.stderr)
    return _code(found)


def _code(found: Collected) -> int:
    """A damaged shard that leaves no pair without a result is still nothing to be green about."""
    code = exit_code(found.outcomes, interrupted=found.interrupted)
    return code or (EXIT_INFRA if found.problems else EXIT_OK)


def _write(folder: Path, found: Sequence[Outcome], plan: Plan, *, interrupted: bool) -> None:
    write(folder / SUMMARY, markdown(found, plan, known_issues(), interrupted=interrupted))
    write(folder / GRID, json.dumps(as_json(found, plan, interrupted=interrupted), indent=1) + "\n")


def _tell(one: Outcome, number: int, of: int) -> None:
    what = one.reason or tally(one.records)
    built = f", binaries {duration(one.build_seconds)}" if one.build_seconds > 1 else ""
    print(f"[{number}/{of}] {word(one):12}{short(one.pair):16}{duration(one.seconds)}{built}  {what}", flush=True)
