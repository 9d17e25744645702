"""From the folders of shards to one result. What is lost is infrastructure, never green."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raykueue.errors import EXIT_INFRA, UsageError
from raykueue.matrix.matrix_file import MatrixFile, Plan
from raykueue.matrix.outcome import NOT_YET, Outcome, outcome
from raykueue.matrix.selection import Shard, pair_id
from raykueue.report.errors import ReportError


@dataclass(frozen=True, slots=True)
class Collected:
    """All shards of a matrix together."""

    plan: Plan
    outcomes: tuple[Outcome, ...]
    """One for every pair of the plan, in its order."""
    interrupted: bool
    problems: tuple[str, ...]
    """What is wrong with the shards themselves."""


def collect(folders: Sequence[Path]) -> Collected:
    """Puts shards together; the pairs of those that are missing or damaged are infra.

    Raises:
        UsageError: no folder was named, they are shards of different matrices, or one shard is there twice.
        ReportError: none of them can be read, so nobody knows what was to run.
    """
    shards, problems = _read(folders)
    first = shards[0]
    for other in shards[1:]:
        if different := first.plan.differences(other.plan):
            raise UsageError(
                f"{first.folder} and {other.folder} are of different matrices: they differ in {', '.join(different)}"
            )
        if other.shard.of != first.shard.of:
            raise UsageError(f"{other.folder} is shard {other.shard}, {first.folder} is {first.shard}: cut differently")
    numbers = [one.shard.number for one in shards]
    if twice := {number for number in numbers if numbers.count(number) > 1}:
        raise UsageError(f"shard {min(twice)}/{first.shard.of} is there twice: one is expected, none is trusted")
    lost = {number for number in range(1, first.shard.of + 1) if number not in numbers}
    problems += [f"shard {number}/{first.shard.of} is lost" for number in sorted(lost)]
    found = {pair_id(pair): one for one in shards for pair in one.mine}
    return Collected(
        plan=first.plan,
        outcomes=tuple(_outcome(first.plan, number, found, first.shard.of) for number in range(len(first.plan.pairs))),
        interrupted=any(one.interrupted for one in shards),
        problems=tuple(problems),
    )


def _outcome(plan: Plan, index: int, found: dict[str, MatrixFile], of: int) -> Outcome:
    pair = plan.pairs[index]
    shard = found.get(pair_id(pair))
    if shard is None:
        return Outcome(pair, EXIT_INFRA, f"lost: shard {Shard(index % of + 1, of)}, which was to run it, is not there")
    ran = shard.results.get(pair_id(pair))
    if ran is None:
        return Outcome(pair, EXIT_INFRA, f"lost: {NOT_YET}, though shard {shard.shard} was to run it")
    return outcome(pair, ran, shard.folder, plan)


def _read(folders: Sequence[Path]) -> tuple[list[MatrixFile], list[str]]:
    if not folders:
        raise UsageError("no folder is named: expected those that `raykueue matrix run` has written")
    shards: list[MatrixFile] = []
    problems: list[str] = []
    for folder in folders:
        try:
            shards.append(MatrixFile.load(folder))
        except ReportError as error:
            problems.append(str(error))
    if not shards:
        raise ReportError("; ".join(problems))
    return shards, problems
