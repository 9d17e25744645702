from __future__ import annotations

import argparse
import importlib
import signal
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from raykueue import cli
from raykueue.errors import EXIT_INFRA, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, ClusterError, UsageError

Run = Callable[[argparse.Namespace], int]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Makes `raykueue act` call this."""

    def install(run: Run) -> None:
        module = ModuleType("raykueue_test_command")

        def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
            subparsers.add_parser("act").set_defaults(run=run)

        monkeypatch.setattr(module, "add_parser", add_parser, raising=False)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(cli, "GROUPS", (cli._Group(module.__name__, {"act": "do something"}),))

    return install


def raising(error: BaseException) -> Run:
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


def signalled(number: signal.Signals) -> Run:
    def run(_: argparse.Namespace) -> int:
        signal.raise_signal(number)
        return EXIT_OK

    return run


def test_help_lists_every_command_and_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == EXIT_OK
    text = capsys.readouterr().out
    for name in ("up", "down", "status", "logs", "report", "replay", "toolchain"):
        assert f"\n    {name} " in text or f"\n    {name}\n" in text
    assert "examples:" in text


@pytest.mark.parametrize("group", cli.GROUPS, ids=lambda group: group.module)
def test_the_overview_says_of_each_command_what_its_own_module_says(group: cli._Group) -> None:
    subparsers = argparse.ArgumentParser().add_subparsers()
    importlib.import_module(group.module).add_parser(subparsers)
    assert {action.dest: action.help for action in subparsers._choices_actions} == dict(group.commands)


@pytest.mark.parametrize("name", [name for group in cli.GROUPS for name in group.commands])
def test_each_command_explains_itself_with_examples_or_more(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == EXIT_OK
    assert f"usage: raykueue {name}" in capsys.readouterr().out


def test_help_and_version_import_nothing_large() -> None:
    code = (
        "import sys; from raykueue.cli import main; codes = main(['--help']), main(['--version']); "
        "large = {'kubernetes', 'jsonschema', 'yaml', 'cryptography', 'psutil', 'asyncio'} & set(sys.modules); "
        "sys.exit(f'{codes} {large}' if any(codes) or large else 0)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1].startswith("raykueue 0.")


def test_without_a_command_the_overview_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == EXIT_USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "commands:" in captured.err


@pytest.mark.parametrize("words", [["nosuch"], ["--nosuch"], ["status", "--nosuch"], ["toolchain"], ["toolchain", "x"]])
def test_what_is_not_understood_is_a_usage_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == EXIT_USAGE
    assert "--help` shows examples" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [(ClusterError("no room\n    last line of a log"), EXIT_INFRA), (UsageError("no such thing"), EXIT_USAGE)],
)
def test_our_errors_are_told_whole_and_have_their_code(
    error: Exception, code: int, command: Callable[[Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(error))
    assert cli.main(["act"]) == code
    assert capsys.readouterr().err == f"raykueue: {error}\n"


def test_an_interrupt_has_its_own_code(command: Callable[[Run], None], capsys: pytest.CaptureFixture[str]) -> None:
    command(raising(KeyboardInterrupt()))
    assert cli.main(["act"]) == EXIT_INTERRUPTED
    assert capsys.readouterr().err == "raykueue: interrupted\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_is_an_interrupt_and_only_while_a_command_runs(
    number: signal.Signals, command: Callable[[Run], None]
) -> None:
    before = signal.signal(number, signal.SIG_DFL)
    try:
        command(signalled(number))
        assert cli.main(["act"]) == EXIT_INTERRUPTED
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_request_to_end_that_is_ignored_stays_ignored(command: Callable[[Run], None]) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        command(signalled(signal.SIGHUP))
        assert cli.main(["act"]) == EXIT_OK
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_defect_of_ours_is_shown_whole_and_is_no_verdict(
    command: Callable[[Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(ZeroDivisionError("oops")))
    assert cli.main(["act"]) == EXIT_INFRA
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "ZeroDivisionError: oops" in shown


def test_a_reader_that_hangs_up_gets_no_traceback() -> None:
    code = "import sys; from raykueue.cli import main; sys.exit(main(['toolchain', 'list']))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == EXIT_INFRA
