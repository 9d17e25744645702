"""Python's cycle collector, in a process that decodes JSON all day."""

from __future__ import annotations

import gc

THRESHOLDS = (50_000, 20, 50)
"""What is decoded has no cycles, and goes with its last reference. With the default of 700 new containers the collector
walks through it again and again: a third of the cost of a fold, and a fifth of that of decoding (ci/bench/ledger)."""


def seldom() -> None:
    """Lets it run seldom, and never over what the process began with."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
