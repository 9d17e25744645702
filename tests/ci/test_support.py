from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ci.support.children import Ended, run
from ci.support.table import table
from tests.ci.scripts import ROOT


def test_a_table_has_columns_and_numbers_to_the_right() -> None:
    text = table(("NAME", "SECONDS", "WHY"), [("a", "1.5", ""), ("longer", "10.0", "x")], right=("SECONDS",))
    assert text.splitlines() == ["NAME    SECONDS  WHY", "a           1.5", "longer     10.0  x"]


@pytest.mark.parametrize(
    ("how", "ended"),
    [
        ("exit 0", Ended(0, False)),
        ("exit 5", Ended(5, False)),
        ("kill -INT $$", Ended(2, True)),
        ("kill -TERM $$", Ended(2, True)),
        ("kill -KILL $$", Ended(3, False)),
    ],
)
def test_the_end_of_a_command_is_told_by_our_exit_codes(how: str, ended: Ended, tmp_path: Path) -> None:
    assert run(["bash", "-c", how], tmp_path) == ended


def test_a_command_gets_the_environment_that_is_given_on_top_of_ours(tmp_path: Path) -> None:
    command = ["bash", "-c", 'test "$RAYKUEUE_X" = y && test -n "$PATH"']
    assert run(command, tmp_path, {"RAYKUEUE_X": "y"}) == Ended(0, False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_reaches_the_command_which_may_finish(number: signal.Signals, tmp_path: Path) -> None:
    # The outer process is told to end; only the inner one says how it goes on.
    inner = "trap 'echo cleaned > done; exit 7' INT TERM; echo > ready; for _ in {1..900}; do sleep 0.02; done"
    outer = (
        "import sys; from pathlib import Path; from ci.support.children import run; "
        f"e = run(['bash', '-c', {inner!r}], Path({str(tmp_path)!r})); sys.exit(e.code + 10 * e.interrupted)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", outer], env=environment) as process:
        while not (tmp_path / "ready").exists():
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(20) == 17
    assert (tmp_path / "done").exists()
