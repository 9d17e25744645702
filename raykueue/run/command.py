"""`raykueue up`, `down`, `status` and `logs`: clusters that stay up between runs."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from raykueue.clusters.embedded.keeping import tail
from raykueue.clusters.folder import ClusterFolder, clusters, made_by, reclaim_dead
from raykueue.clusters.kind.ingredients import node_prefix
from raykueue.clusters.standing import Standing
from raykueue.errors import EXIT_OK, ClusterError, ClusterLocked, UsageError
from raykueue.model.versions import PAIRED, Pair
from raykueue.run.assembly import CONTROLLERS
from raykueue.run.backends import backend_of
from raykueue.run.ending import end
from raykueue.run.failed_starts import logs_of_a_start
from raykueue.run.leftovers import reclaim_runs
from raykueue.run.live import LiveCluster, bring_up, ended_if_it_fails
from raykueue.run.options import DEFAULT_CLUSTER, RunOptions
from raykueue.toolchain.builder import Toolchain, to_stderr
from raykueue.toolchain.lock import load_versions

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - the type has no public name

_LINES = 40
"""Of a log, unless more are asked for."""
_WIDTH = 4000
"""Columns of a log's line: more are no text for people."""

_UP = """\
examples:
  raykueue up                                    the default pair, as cluster "default"
  raykueue up old --kueue 0.16.2                 another release, as cluster "old"
  raykueue up real --cluster kind                real nodes in the local Docker, and real Ray
  export KUBECONFIG=$(raykueue up --kubeconfig)  only the path on standard output, also if it was up already

It stays up until `raykueue down`, whatever becomes of this terminal. The first start builds what is missing. What a
cluster said that does not start is kept in a folder that the error names, until the next one of that name.
"""
_DOWN = """\
examples:
  raykueue down            cluster "default"
  raykueue down old        another one
  raykueue down --all      all that nobody uses
"""
_STATUS = """\
Also cleans up: clusters and run folders whose owner was killed are ended and removed, and named here. What runs is
never touched.
"""
_LOGS = """\
examples:
  raykueue logs kueue              the last lines of Kueue's log, in cluster "default"
  raykueue logs kuberay old -n 500
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds the four sub-commands; each sets `run`, a function from the parsed arguments to an exit code."""
    up = _add(subparsers, "up", _up, "start a cluster, and leave it up", _UP)
    up.add_argument("name", metavar="NAME", nargs="?", default=DEFAULT_CLUSTER, help=f"({DEFAULT_CLUSTER})")
    for product in PAIRED:
        up.add_argument(f"--{product}", metavar="VERSION", help="a release in versions.toml (the default pair's)")
    up.add_argument("--cluster", metavar="embedded|kind", default="embedded", help="where (embedded)")
    up.add_argument("--kind-image", metavar="IMAGE", help="of kind's nodes (RAYKUEUE_KIND_IMAGE, else the pinned one)")
    up.add_argument("--kubeconfig", action="store_true", help="print nothing but the path of the kubeconfig")
    down = _add(subparsers, "down", _down, "end a cluster that was left up", _DOWN)
    which = down.add_mutually_exclusive_group()
    which.add_argument("name", metavar="NAME", nargs="?", default=DEFAULT_CLUSTER, help=f"({DEFAULT_CLUSTER})")
    which.add_argument("--all", action="store_true", help="every cluster")
    down.add_argument("--force", action="store_true", help="also if a run uses it")
    _add(subparsers, "status", _status, "show which clusters are up, and clean up after runs that died", _STATUS)
    logs = _add(subparsers, "logs", _logs, "print the end of a component's log", _LOGS)
    logs.add_argument("component", metavar="COMPONENT", help="kueue, kuberay, kube-apiserver, …")
    logs.add_argument("name", metavar="NAME", nargs="?", default=DEFAULT_CLUSTER, help=f"({DEFAULT_CLUSTER})")
    logs.add_argument("-n", "--lines", type=int, default=_LINES, metavar="COUNT", help=f"({_LINES})")


def _add(
    subparsers: Subparsers, name: str, run: Callable[[argparse.Namespace], int], text: str, more: str
) -> argparse.ArgumentParser:
    parser = subparsers.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=more,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def _up(arguments: argparse.Namespace) -> int:
    options = RunOptions(cluster=arguments.cluster, node_image=arguments.kind_image).checked()
    if options.cluster == "existing":
        raise UsageError("--cluster existing: it is up, so there is nothing to start")
    versions = load_versions()
    pair = versions.pair(arguments.kueue, arguments.kuberay, arguments.kubernetes)
    folder = ClusterFolder.named(arguments.name)
    reclaim_dead()  # what a cluster of this name has left must be gone before its new lock is taken
    if folder.alive() and folder.about and made_by(folder) != options.cluster:
        raise UsageError(f"cluster {folder.name} is up, of --cluster {made_by(folder)}: give yours another name")
    if _is_up(folder, pair):
        return _tell_up(folder, arguments, "was up already")
    with folder.locked("raykueue up"):
        if _is_up(folder, pair):  # since a moment ago
            return _tell_up(folder, arguments, "was up already")
        with logs_of_a_start(folder.name) as evidence:
            live = bring_up(folder, pair, versions, _tell, backend_of(options), evidence)
            with ended_if_it_fails(live.cluster, evidence):
                live.cluster.check()
                live.cluster.detach()
        live.cluster.close()
    return _tell_up(folder, arguments, "is up", live)


def _tell(line: str) -> None:
    if line:
        to_stderr(line)


def _is_up(folder: ClusterFolder, pair: Pair) -> bool:
    if not folder.alive():
        return False
    standing = Standing.of(folder)
    if standing.since is None or not folder.detached():
        raise ClusterLocked(
            f"cluster {folder.name} is being started, or belongs to a run: {standing.used_by or 'its keeper runs'}; "
            "wait for it, or give yours another name"
        )
    if dict(standing.pair) != pair.versions():
        raise UsageError(
            f"cluster {folder.name} is up with {_pair(standing)}, but {pair} was asked for; "
            f"`raykueue down {folder.name}` first, or give the new one another name"
        )
    if standing.ended or standing.trouble:
        raise ClusterError(
            f"cluster {folder.name} is up, but not whole: {standing.processes}; "
            f"`raykueue logs COMPONENT {folder.name}` shows why, `raykueue down {folder.name}` ends it"
        )
    return True


def _tell_up(folder: ClusterFolder, arguments: argparse.Namespace, how: str, live: LiveCluster | None = None) -> int:
    standing = Standing.of(folder)
    if arguments.kubeconfig:
        print(standing.kubeconfig)
        return EXIT_OK
    named = "" if folder.name == DEFAULT_CLUSTER else f" {folder.name}"
    reuse = "" if folder.name == DEFAULT_CLUSTER else f"={folder.name}"
    what_kueue_says = "what Kueue says" + ("" if folder.removals() else f"; all logs are in {folder.path}")
    print(f"cluster {folder.name} {how}: {_pair(standing)}")
    if live is not None:
        print("  " + ", ".join(f"{what} {seconds:.1f} s" for what, seconds in live.seconds.items()))
    print()
    print(f"  export KUBECONFIG={standing.kubeconfig}")
    for command, meaning in (
        (f"pytest --reuse-cluster{reuse}", "runs the suites on it"),
        (f"raykueue logs kueue{named}", what_kueue_says),
        (f"raykueue down{named}", "ends it"),
    ):
        print(f"  {command:28}  # {meaning}")
    return EXIT_OK


def _down(arguments: argparse.Namespace) -> int:
    if not arguments.all:
        folder = ClusterFolder.named(arguments.name)
        ended = end(folder, force=arguments.force)
        print(f"cluster {folder.name} is ended" if ended else f"no cluster {folder.name} is up: nothing to do")
        return EXIT_OK
    code = EXIT_OK
    found = clusters()
    for folder in found:
        try:
            end(folder, force=arguments.force)
            print(f"cluster {folder.name} is ended")
        except ClusterLocked as error:
            print(f"raykueue: {error}", file=sys.stderr)
            code = error.exit_code
    if not found:
        print("no cluster is up: nothing to do")
    return code


def _status(_: argparse.Namespace) -> int:
    def trouble(line: str) -> None:
        print(f"raykueue: {line}", file=sys.stderr)

    for name, ended in reclaim_dead(trouble).items():
        what = f"ended {', '.join(ended)}, and removed its folder" if ended else "removed its folder"
        print(f"cleaned up after cluster {name}, whose owner is gone: {what}")
    for name in reclaim_runs():
        print(f"cleaned up after {name}, whose owner is gone: removed its folder")
    standings = [Standing.of(folder) for folder in clusters() if folder.alive()]
    if not standings:
        print("no cluster is up; `raykueue up` starts one")
        return EXIT_OK
    _table(
        ("NAME", "PAIR", "UP SINCE", "IN USE BY", "PROCESSES", "KUBECONFIG"),
        [
            (
                one.name,
                _pair(one),
                f"{one.since:%Y-%m-%d %H:%M:%S}" if one.since else "",
                one.used_by or "nobody",
                one.processes,
                one.kubeconfig,
            )
            for one in standings
        ],
    )
    return EXIT_OK


def _logs(arguments: argparse.Namespace) -> int:
    folder = ClusterFolder.named(arguments.name)
    if folder.removals():
        return _logs_of_deployed(folder, arguments)
    known = sorted(path.stem for path in folder.path.glob("*.log"))
    if not known:
        raise UsageError(f"there is no cluster {folder.name}; `raykueue status` shows which there are")
    if arguments.component not in known:
        raise UsageError(f"cluster {folder.name} has no log of {arguments.component!r}; it has {', '.join(known)}")
    print(textwrap.dedent(tail(folder.path / f"{arguments.component}.log", arguments.lines, _WIDTH)))
    return EXIT_OK


def _logs_of_deployed(folder: ClusterFolder, arguments: argparse.Namespace) -> int:
    if arguments.component not in CONTROLLERS:
        raise UsageError(
            f"cluster {folder.name} has no log of {arguments.component!r}; it has {', '.join(CONTROLLERS)}, and "
            f"`kind export logs --name {node_prefix(folder.name)}` writes all that its nodes said"
        )
    from raykueue.clusters.deployments import Deployments  # an HTTP client that the others do without

    versions, has = load_versions(), folder.about["pair"]
    pair = versions.made_of(has)
    assembly = backend_of(RunOptions(), folder).assemble(Toolchain(versions), versions, pair)
    deployments = Deployments(folder.path / "kubeconfig", assembly.components())
    print(textwrap.dedent(deployments.logs(arguments.component, arguments.lines)))
    return EXIT_OK


def _pair(standing: Standing) -> str:
    has = standing.pair
    return str(Pair(has["kubernetes"], has["kueue"], has["kuberay"])) if has else "(being started)"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
