"""A matrix for GitHub Actions. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raykueue.errors import UsageError
from raykueue.matrix.selection import Shard, short
from raykueue.model.versions import Pair

MOST = 256
"""Jobs that GitHub Actions generates from one matrix of a workflow run (docs.github.com, "Running variations of jobs in
a workflow": a matrix will generate a maximum of 256 jobs)."""


def jobs_by_pair(pairs: Sequence[Pair]) -> dict[str, Any]:
    """`strategy.matrix`: one job for each pair.

    Raises:
        UsageError: there are none, or more than one matrix may have.
    """
    return _checked(
        [
            {"name": short(pair), **pair.versions(), "pair": short(pair), "class": pair.klass}
            for pair in sorted(pairs, key=lambda pair: ("pinned", "supported", "exploratory").index(pair.klass))
        ]
    )


def jobs_by_shard(pairs: Sequence[Pair], shards: int) -> dict[str, Any]:
    """`strategy.matrix`: so many jobs, each of which runs a shard; none of them is empty.

    Raises:
        UsageError: as `jobs_by_pair`, or the number of shards is none.
    """
    if shards < 1:
        raise UsageError(f"--shards {shards}: expected at least 1")
    parts = [Shard(number, min(shards, len(pairs))) for number in range(1, min(shards, len(pairs)) + 1)]
    return _checked(
        [
            {"name": f"shard {part}", "shard": str(part), "pairs": ",".join(short(pair) for pair in part.part(pairs))}
            for part in parts
        ]
    )


def _checked(include: list[dict[str, str]]) -> dict[str, Any]:
    if not include:
        raise UsageError("no pair is chosen, and GitHub Actions refuses an empty matrix: choose others with --pairs")
    if len(include) > MOST:
        raise UsageError(f"{len(include)} jobs, and GitHub Actions takes {MOST}: use --shards {MOST} or less")
    return {"include": include}
