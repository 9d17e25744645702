"""Doing at once whatever can be done at once: start-up as a graph, not a list."""

from __future__ import annotations

import graphlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do, once all steps that it names are done."""

    do: Callable[[], object]
    after: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Timing:
    """When a step ran, in seconds since the graph was started."""

    name: str
    begin: float
    end: float


def run(steps: Mapping[str, Step], give_up: Callable[[], None]) -> list[Timing]:
    """Runs all steps; the first that fails stops the rest from being started, and its error is raised.

    Args:
        steps: by name.
        give_up: called after a failure or an interrupt, to make those fail that still run: they are waited for.

    Raises:
        ValueError: a step waits for one that doesn't exist, or for itself.
    """
    unknown = {name for step in steps.values() for name in step.after} - set(steps)
    if unknown:
        raise ValueError(f"steps wait for {sorted(unknown)}, which are no steps")
    order = graphlib.TopologicalSorter({name: step.after for name, step in steps.items()})
    order.prepare()
    zero = time.monotonic()
    timings: list[Timing] = []

    def timed(name: str) -> str:
        begin = time.monotonic() - zero
        steps[name].do()
        timings.append(Timing(name, begin, time.monotonic() - zero))
        return name

    with ThreadPoolExecutor(max_workers=len(steps)) as pool:
        running: set[Future[str]] = set()
        try:
            while order.is_active():
                running |= {pool.submit(timed, name) for name in order.get_ready()}
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    order.done(future.result())
        except BaseException:
            give_up()
            raise
    return sorted(timings, key=lambda timing: timing.begin)
