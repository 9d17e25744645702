"""The `raykueue` command. Only the sub-command that was named is imported, so that `--help` is there at once."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from raykueue.errors import EXIT_INFRA, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, InfraError, UsageError

_DESCRIPTION = "Conformance suite for RayJobs under Kueue. The tests themselves are run by pytest; this is the rest."
_EXAMPLES = """\
examples:
  raykueue up                       start a cluster with Kueue and KubeRay, and leave it up
  pytest --reuse-cluster            run the suites on it
  raykueue status                   what is up, and who uses it
  raykueue down                     end it
  raykueue report                   show the report of the latest run again

`raykueue COMMAND --help` says more. Exit codes: 0 green, 1 product failure, 2 interrupted, 3 infrastructure,
4 usage, 5 nothing ran.
"""


@dataclass(frozen=True, slots=True)
class _Group:
    """Sub-commands that one module brings, in `add_parser(subparsers)`."""

    module: str
    commands: Mapping[str, str]
    """Name → one line, as the module itself has it."""


GROUPS = (
    _Group(
        "raykueue.run.command",
        {
            "up": "start a cluster, and leave it up",
            "down": "end a cluster that was left up",
            "status": "show which clusters are up, and clean up after runs that died",
            "logs": "print the end of a component's log",
        },
    ),
    _Group("raykueue.report.command", {"report": "show the report of a finished run"}),
    _Group("raykueue.report.gate.command", {"gate": "say whether reports are enough to release upon"}),
    _Group("raykueue.run.replay_command", {"replay": "judge a saved journal again, without a cluster"}),
    _Group("raykueue.matrix.command", {"matrix": "run the suites on many pairs of versions"}),
    _Group("raykueue.pages.command", {"docs": "write the pages that are generated"}),
    _Group("raykueue.toolchain.versions_command", {"versions": "show the pairs, and verify versions.toml"}),
    _Group("raykueue.toolchain.command", {"toolchain": "build, list and find the pinned binaries"}),
)
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class _Parser(argparse.ArgumentParser):
    """One whose errors have the exit code that all our commands have."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}; `{self.prog} --help` shows examples\n")


class _Version(argparse.Action):
    """Prints the version; it is looked up only if asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"raykueue {version('raykueue')}")
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code (`raykueue.errors`)."""
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        with _ended_like_ctrl_c():
            code = _run(words)
            sys.stdout.flush()
            return code
    except (InfraError, UsageError) as error:
        print(f"raykueue: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("raykueue: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone. Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INFRA
    except Exception:  # noqa: BLE001 - a defect of ours: it must be seen, and must never look like a verdict
        traceback.print_exc()
        print("raykueue: this is a defect of raykueue itself; please report it with the lines above", file=sys.stderr)
        return EXIT_INFRA


def build_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser for these words: complete for the command that they name, an outline for the others."""
    parser = _Parser(
        prog="raykueue",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=16),
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    named = next((word for word in words if not word.startswith("-")), None)
    for group in GROUPS:
        if named in group.commands:
            importlib.import_module(group.module).add_parser(subparsers)
        else:
            for name, text in group.commands.items():
                subparsers.add_parser(name, help=text)
    return parser


def _run(words: Sequence[str]) -> int:
    parser = build_parser(words)
    try:
        arguments = parser.parse_args(words)
    except SystemExit as end:  # argparse has said what there is to say
        return EXIT_OK if end.code is None else int(end.code)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    code: int = arguments.run(arguments)
    return code


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """A request to end is a KeyboardInterrupt, so that what was begun is undone. One that is ignored stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    changed = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
