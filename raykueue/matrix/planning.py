"""The plan of a matrix that starts now."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import raykueue
from raykueue.matrix.matrix_file import Plan
from raykueue.model.versions import Pair
from raykueue.report.provenance import commit_of, suite_version
from raykueue.toolchain.lock import lock_text


def plan_of(pairs: Sequence[Pair], default: Pair, profile: str, arguments: Sequence[str]) -> Plan:
    """With what this suite says of itself."""
    return Plan(
        pairs=tuple(pairs),
        default=default,
        profile=profile,
        arguments=tuple(arguments),
        lock=hashlib.sha256(lock_text().encode()).hexdigest(),
        suite_version=suite_version(),
        commit=commit_of(Path(raykueue.__file__)),
    )
