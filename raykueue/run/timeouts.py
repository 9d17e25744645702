"""How long anything may take, in one table.

Waits follow events and return within milliseconds; these are the patience, not the pace. Each is several times the
longest time seen, with eight tests side by side on two cores where nodes are simulated, since a machine in CI is slower
still.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from raykueue.clusters.protocol import Tier


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds."""

    state: float = 45.0
    """A job reaches the state that is waited for. KubeRay looks at a running job every 3 s; a retry is two looks."""
    books: float = 6.0
    """Kueue publishes usage within 1 s of a change, then writes, conflicts and retries: 3 s on a busy machine."""
    end: float = 45.0
    """All of a test's jobs is gone after they are deleted, beyond the time that their containers take to stop."""
    stop: float = 0.0
    """A pod that was told to go may take so long until it is gone."""
    judge: float = 75.0
    """Nothing can fire any more: a second on a healthy pair; the most patient rules wait for 60 s."""


DEFAULT = Timeouts()
ON_NODES = Timeouts(state=180.0, end=120.0, stop=32.0)
"""Real pods: until Ray runs a job takes 30 s, and its pods may take all of their grace of 30 s to go, and some more for
the kubelet to say so."""
BY_TIER: Mapping[Tier, Timeouts] = {"control-plane": DEFAULT, "node": ON_NODES}
