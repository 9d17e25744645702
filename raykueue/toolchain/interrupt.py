"""Signals that ask to end, kept until a safe point."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ORDINARY = (signal.SIG_DFL, signal.default_int_handler)


class Interrupts:
    """Turns SIGINT, SIGTERM and SIGHUP into a KeyboardInterrupt that is raised by `check` only.

    An exception at any point, as Ctrl-C raises it, could come after a process was started and before we know its id:
    it would run on.
    """

    def __init__(self) -> None:
        self._came: signal.Signals | None = None

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Keeps signals for `check`, and for the end of the block.

        A handler that somebody has set is left alone, and so are other threads, which can't set one.

        Raises:
            KeyboardInterrupt: a signal came and was not seen by `check`.
        """
        main = threading.current_thread() is threading.main_thread()
        kept = {number: signal.getsignal(number) for number in _ASKING} if main else {}
        ours = {number: handler for number, handler in kept.items() if handler in _ORDINARY}
        try:
            for number in ours:
                signal.signal(number, self._keep)
            yield
        finally:
            for number, handler in ours.items():
                signal.signal(number, handler)
        self.check()

    def check(self) -> None:
        """Raises KeyboardInterrupt, once, if a signal came."""
        came, self._came = self._came, None
        if came is not None:
            raise KeyboardInterrupt(came.name)

    def _keep(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the form of a signal handler
        self._came = signal.Signals(number)
