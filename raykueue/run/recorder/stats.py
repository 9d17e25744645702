"""How the recorder itself is doing: what it saw, what it costs, how far behind it is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from raykueue.kube.watch import KindStream
from raykueue.run.recorder.barriers import Barriers
from raykueue.run.recorder.intake import Intake


def stats(intake: Intake, barriers: Barriers, streams: Mapping[str, KindStream]) -> dict[str, Any]:
    """Counts since the start; times in ms (seconds where the name says so); `echo` is the lag of the streams: from
    the answer to a write until the slowest kind's stream had it."""
    return {
        "events": dict(intake.events),
        "bytes": intake.journal.bytes,
        "reconnects": {kind: stream.reconnects for kind, stream in streams.items() if stream.reconnects},
        "gaps": intake.gaps,
        "barriers": barriers.count,
        "barrier_ms": percentiles(barriers.durations_ms),
        "echo_ms": percentiles(barriers.echoes_ms),
        "cpu_s": round(time.process_time(), 3),
        "scopes": {"open": len(intake.router.open_values()), "closed": len(intake.closed)},
        "problems": list(intake.problems),
    }


def percentiles(values: Iterable[float]) -> dict[str, float]:
    """p50, p99 and max, rounded to 0.1; nothing if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    last = len(ordered) - 1
    return {name: round(ordered[round(last * part)], 1) for name, part in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))}
