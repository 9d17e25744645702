"""A pytest plugin that measures: how long after an event's arrival does the wait return that it ended?

Each test process appends to a file of its own in the folder WAIT_TIMES, one number of milliseconds a line. A wait that
was over before it began is not counted.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from raykueue.run.feed import Feed

FOLDER = "WAIT_TIMES"

_wait = Feed.wait


def _timed(feed: Feed, predicate: Callable[[Feed], Any], deadline: float) -> Any:
    waiting = threading.get_ident()
    ending: list[int] = []

    def spied(seen: Feed) -> Any:
        result = predicate(seen)
        if result is not None and threading.get_ident() != waiting:
            ending.append(seen.events[-1].arrived)
        return result

    result = _wait(feed, spied, deadline)
    if ending:
        milliseconds = (time.time_ns() - ending[0]) / 1e6
        with (Path(os.environ[FOLDER]) / str(os.getpid())).open("a", encoding="utf-8") as file:
            file.write(f"{milliseconds}\n")
    return result


def pytest_configure() -> None:
    """Measures from now on."""
    Feed.wait = _timed  # type: ignore[method-assign,assignment] # that is the purpose
