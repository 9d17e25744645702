from __future__ import annotations

import json
from pathlib import Path

import pytest

from raykueue.toolchain.failures import explain
from raykueue.toolchain.process import Output


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ('go: x@v1: Get "https://proxy.invalid/x": dial tcp: lookup proxy.invalid: no such host', "registry can't be"),
        ("go: x@v1: reading https://proxy.invalid/x: 404 Not Found", "refuses this version"),
        ("verifying x@v1: checksum mismatch", "GOSUMDB"),
        ("write $WORK/b001/_pkg_.a: no space left on device", "the disk is full"),
        ("x/y: compile: signal: killed", "want of memory"),
        ("./main.go:3:1: undefined: nothing", "no fault of network or disk"),
    ],
)
def test_the_message_says_what_to_do_and_shows_what_was_said(said: str, hint: str) -> None:
    message = str(explain("go build x", Output(1, "", said), Path("cache")))
    assert hint in message
    assert said in message
    assert "`go build x` ended with code 1" in message


def test_the_reason_in_gos_json_answer_is_found() -> None:
    answer = json.dumps({"Path": "x", "Error": "dial tcp 127.0.0.1:9: connect: connection refused"})
    message = str(explain("go mod download", Output(1, answer, ""), Path("cache")))
    assert "registry can't be reached" in message
    assert message.endswith("connection refused")
