from __future__ import annotations

import signal
from types import FrameType

import pytest

from raykueue.toolchain.interrupt import Interrupts


def test_a_signal_is_kept_until_it_is_asked_for() -> None:
    before = signal.getsignal(signal.SIGTERM)
    interrupts = Interrupts()
    reached = False
    with interrupts.deferred():
        signal.raise_signal(signal.SIGTERM)
        reached = True
        with pytest.raises(KeyboardInterrupt, match="SIGTERM"):
            interrupts.check()
        interrupts.check()
    assert reached
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_that_nobody_asked_for_is_raised_at_the_end() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored
    try:
        with pytest.raises(KeyboardInterrupt, match="SIGHUP"), Interrupts().deferred():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_handler_that_somebody_has_set_is_left_alone() -> None:
    got: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        got.append(number)

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with Interrupts().deferred():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert got == [signal.SIGTERM]
