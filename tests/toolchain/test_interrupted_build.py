from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from raykueue.errors import EXIT_INTERRUPTED
from tests.toolchain.fake_go import FakeGo

_BUILD = """
import argparse, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored
from raykueue.toolchain.command import add_parser
parser = argparse.ArgumentParser()
add_parser(parser.add_subparsers())
arguments = parser.parse_args(["toolchain", "build", "etcd"])
sys.exit(arguments.run(arguments))
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_build_leaves_no_process_and_no_half_artifact(
    tmp_path: Path, go: FakeGo, number: signal.Signals
) -> None:
    go.block()
    cache = tmp_path / "cache"
    root = Path(__file__).parents[2]
    environment = {**os.environ, "RAYKUEUE_CACHE": str(cache), "PYTHONPATH": str(root)}
    with subprocess.Popen(
        [sys.executable, "-c", _BUILD], env=environment, stderr=subprocess.PIPE, text=True
    ) as builder:
        with (go.home / "started").open("rb", buffering=0) as started:
            assert started.read(1) == b"x"
            assert any((cache / "bin").iterdir())
            builder.send_signal(number)
            # The end of the file comes when go and the compiler that it started are both gone.
            assert started.read() == b""
        _, said = builder.communicate()
    assert builder.returncode == EXIT_INTERRUPTED
    assert "interrupted" in said
    assert list((cache / "bin").iterdir()) == []
