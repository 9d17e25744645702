"""The machine that something was measured on, and numbers about many measurements."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path


def machine() -> str:
    """One line: cores, processor, memory, system, Python, and how busy it is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    busy = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    return (
        f"{os.cpu_count()} cores ({_processor()}), {memory:.0f} GiB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}; load {busy}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent of all values don't exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(len(ordered) * percent / 100 + 0.5) - 1))]


def summary(values: Sequence[float], digits: int) -> tuple[str, str, str, str, str]:
    """Count, minimum, median, 99th percentile and maximum, as text."""
    numbers = (min(values), statistics.median(values), percentile(values, 99), max(values))
    return str(len(values)), *(f"{number:.{digits}f}" for number in numbers)  # type: ignore[return-value] # of five
