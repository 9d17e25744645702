"""A matrix whose pytest is a fake one, which does for each pair what a test says."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from raykueue.matrix.matrix_file import MatrixFile
from raykueue.matrix.outcome import Outcome, outcomes
from raykueue.matrix.planning import plan_of
from raykueue.matrix.running import Commands, Runner
from raykueue.matrix.selection import Shard
from raykueue.model.versions import Pair

FAKE = Path(__file__).with_name("fake_pytest.py")
ROOT = Path(__file__).resolve().parents[2]
NEW = Pair("1.34.4", "0.19.2", "1.6.2", "pinned")
MIXED = Pair("1.34.4", "0.19.2", "1.5.1")
OLD = Pair("1.34.4", "0.10.1", "1.3.2")
PAIRS = (NEW, MIXED, OLD)


def matrix(folder: Path, shard: Shard | None = None, pairs: Sequence[Pair] = PAIRS, default: Pair = NEW) -> MatrixFile:
    folder.mkdir(exist_ok=True)
    return MatrixFile(folder, plan_of(pairs, default, "smoke", []), shard or Shard())


def runner(one: MatrixFile, acts: Mapping[Pair, str] | None = None, **options: Any) -> Runner:
    """Acts that are not named pass; "no-build" fails before there is a test."""
    said = acts or {}

    def versions(pair: Pair) -> list[str]:
        return ["--kueue", pair.kueue, "--kuberay", pair.kuberay, "--kubernetes", pair.kubernetes]

    def test(pair: Pair, folder: Path) -> list[str]:
        options = ["--profile", one.plan.profile, "--report-dir", str(folder)]
        return [sys.executable, str(FAKE), said.get(pair, "pass"), *versions(pair), *options]

    def build(pair: Pair) -> list[str]:
        return ["/bin/sh", "-c", "echo no compiler; exit 3" if said.get(pair) == "no-build" else "exit 0"]

    return Runner(one, Commands(build, test, ROOT), lambda *_: None, **options)


def ran(folder: Path, acts: Mapping[Pair, str] | None = None, **options: Any) -> dict[Pair, Outcome]:
    one = matrix(folder, options.pop("shard", None), options.pop("pairs", PAIRS))
    return by_pair(outcomes(runner(one, acts, **options).run()))


def by_pair(every: Sequence[Outcome]) -> dict[Pair, Outcome]:
    return {one.pair: one for one in every}
