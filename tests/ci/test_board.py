"""An acceptance script that is interrupted leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ci.support.paths import ROOT
from raykueue.errors import EXIT_INTERRUPTED
from tests.clusters.processes import until

SCRIPT = """
import sys
from pathlib import Path
from ci.acceptance.board import main
from ci.acceptance.ground import Ground

def it_waits(ground: Ground) -> str:
    running = ground.start("sleep", "300")
    Path(sys.argv[0]).with_name("pid").write_text(str(running.pid))
    return ground.finish(running, 0).text

sys.exit(main("", [it_waits]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_script_ends_what_it_has_started(tmp_path: Path, number: signal.Signals) -> None:
    script, pid = tmp_path / "script", tmp_path / "pid"
    script.write_text(SCRIPT)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    argv = [sys.executable, str(script), "--here", "--log", str(tmp_path / "log")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, process_group=0) as board:
        until(lambda: pid.exists() and pid.read_text() != "")
        child = psutil.Process(int(pid.read_text()))
        board.send_signal(number)
        assert board.wait(20) == EXIT_INTERRUPTED
    assert not child.is_running()
    assert list(temporary.iterdir()) == []
