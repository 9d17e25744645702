"""`raykueue toolchain`: builds, lists and finds the pinned binaries."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from raykueue.errors import EXIT_INFRA, EXIT_INTERRUPTED, EXIT_OK, InfraError, UsageError
from raykueue.model.versions import Pair
from raykueue.toolchain.builder import NAMES, Toolchain, to_stderr
from raykueue.toolchain.lock import load_versions

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - the type has no public name

_EXAMPLES = """examples:
  raykueue toolchain build                        what an embedded cluster of the default pair needs
  raykueue toolchain build kind kubectl           what drives kind clusters
  raykueue toolchain build kueue --kueue 0.16.2   one program of another release
  raykueue toolchain list                         what is in the cache, how large, and where
  KUEUE=$(raykueue toolchain path kueue)          the path alone, for scripts

The cache is RAYKUEUE_CACHE, else the user's cache directory. The first build of a pair takes about 15 minutes on two
cores and needs the Go registry; after that nothing is downloaded or compiled again.
"""


def add_parser(subparsers: Subparsers) -> None:
    """Adds `toolchain` with its actions; each sets `run`, a function from the parsed arguments to an exit code."""
    toolchain = subparsers.add_parser(
        "toolchain",
        help="build, list and find the pinned binaries",
        description="Builds the binaries that versions.toml pins, from source with the Go client, and caches them.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = toolchain.add_subparsers(title="actions", metavar="ACTION", required=True)
    names = f"one of: {', '.join(NAMES)}"
    build = _action(actions, "build", _build, "build what is missing in the cache")
    build.add_argument("names", nargs="*", metavar="NAME", help=f"{names} (default: what an embedded cluster needs)")
    _action(actions, "list", _list, "show what there is: name, version, size and path")
    path = _action(actions, "path", _path, "print the path of one binary in the cache")
    path.add_argument("name", metavar="NAME", help=names)


def _action(
    actions: Subparsers, name: str, run: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for product in ("kueue", "kuberay", "kubernetes"):
        parser.add_argument(
            f"--{product}", metavar="VERSION", help="a release in versions.toml (default: the default pair's)"
        )
    parser.set_defaults(run=_guarded(run))
    return parser


def _guarded(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Turns our errors into a message and their exit code."""

    def guarded(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except (InfraError, UsageError) as error:
            print(f"raykueue: {error}", file=sys.stderr)
            return error.exit_code
        except KeyboardInterrupt:
            print("raykueue: interrupted; what was finished is kept, nothing half made is left", file=sys.stderr)
            return EXIT_INTERRUPTED

    return guarded


def _open(arguments: argparse.Namespace) -> tuple[Toolchain, Pair]:
    versions = load_versions()
    pair = versions.pair(kueue=arguments.kueue, kuberay=arguments.kuberay, kubernetes=arguments.kubernetes)
    return Toolchain(versions, log=to_stderr), pair


def _build(arguments: argparse.Namespace) -> int:
    toolchain, pair = _open(arguments)
    for name, path in toolchain.ensure(pair, arguments.names or None).items():
        print(f"{name}\t{path}")
    return EXIT_OK


def _list(arguments: argparse.Namespace) -> int:
    toolchain, pair = _open(arguments)
    print(f"{'NAME':25}{'VERSION':10}{'CACHED':8}{'SIZE':>8}  PATH")
    for name in NAMES:
        path = toolchain.have(name, pair)
        size = f"{_bytes(path) / 1e6:.1f} MB" if path else ""
        version = toolchain.release(name, pair).version
        print(f"{name:25}{version:10}{'yes' if path else 'no':8}{size:>8}  {path or ''}".rstrip())
    return EXIT_OK


def _path(arguments: argparse.Namespace) -> int:
    toolchain, pair = _open(arguments)
    path = toolchain.have(arguments.name, pair)
    if path is None:
        release = toolchain.release(arguments.name, pair)
        options = f"--kueue {pair.kueue} --kuberay {pair.kuberay} --kubernetes {pair.kubernetes}"
        print(
            f"raykueue: {arguments.name} {release.version} is not in the cache ({toolchain.store.root}): "
            f"run `raykueue toolchain build {arguments.name} {options}`",
            file=sys.stderr,
        )
        return EXIT_INFRA
    print(path)
    return EXIT_OK


def _bytes(path: Path) -> int:
    return (
        path.stat().st_size if path.is_file() else sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
    )
