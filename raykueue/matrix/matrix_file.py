"""matrix.json: the plan of a matrix and what one shard of it has found so far, written anew after every pair.

The gate reads it, too, and needs no cluster for it: what makes a plan is elsewhere (`raykueue.matrix.planning`).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from raykueue.errors import UsageError
from raykueue.matrix.selection import Shard, pair_id
from raykueue.model.versions import Pair
from raykueue.report.errors import ReportError
from raykueue.report.files import read, write

MATRIX = "matrix.json"
_VALIDATOR = Draft202012Validator(json.loads(Path(__file__).with_name("matrix.schema.json").read_text("utf-8")))


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to run, the same in every shard of one matrix."""

    pairs: tuple[Pair, ...]
    default: Pair
    """What the others are compared with."""
    profile: str
    arguments: tuple[str, ...]
    """Of pytest, beyond versions and profile."""
    lock: str
    """sha256 of versions.toml."""
    suite_version: str
    commit: str

    def differences(self, other: Plan) -> list[str]:
        """What the two do not agree in."""
        return [f.name for f in dataclasses.fields(self) if getattr(self, f.name) != getattr(other, f.name)]


@dataclass(frozen=True, slots=True)
class Ran:
    """How the process of one pair ended."""

    code: int
    """Its exit code; negative: ended by that signal."""
    reason: str = ""
    """Why there is no report, or why it does not count; empty if it does."""
    report: str = ""
    """The report's folder, relative to the matrix's; empty: there is none."""
    build_seconds: float = 0.0
    seconds: float = 0.0
    earlier: tuple[str, ...] = ()
    """Reports of its runs before, which did not find out everything; oldest first."""

    def body(self) -> dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self) | {"earlier": list(self.earlier)}

    def again(self, before: Ran | None) -> Ran:
        """The same, after a run that has to be remembered: what failed there has failed."""
        if before is None:
            return self
        return dataclasses.replace(self, earlier=(*before.earlier, *([before.report] if before.report else [])))


@dataclass(frozen=True, slots=True)
class MatrixFile:
    """The contents of matrix.json, and where it stands."""

    folder: Path
    plan: Plan
    shard: Shard
    results: Mapping[str, Ran] = field(default_factory=dict)
    """By `pair_id`; what is missing has not run."""
    interrupted: bool = False

    @property
    def mine(self) -> tuple[Pair, ...]:
        """The pairs of this shard."""
        return self.shard.part(self.plan.pairs)

    def save(self) -> None:
        """Writes it whole.

        Raises:
            ReportError: it breaks its schema, or the disk refuses.
        """
        plan = {f.name: getattr(self.plan, f.name) for f in dataclasses.fields(Plan)}
        plan |= {"pairs": [_pair(p) for p in self.plan.pairs], "default": _pair(self.plan.default)}
        body = {
            "format": 2,
            "plan": plan | {"arguments": list(self.plan.arguments)},
            "shard": str(self.shard),
            "interrupted": self.interrupted,
            "results": {name: ran.body() for name, ran in self.results.items()},
        }
        _check(body, self.folder)
        write(self.folder / MATRIX, json.dumps(body, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> MatrixFile:
        """What a run of a matrix has left in `folder`.

        Raises:
            ReportError: there is none, or it is damaged.
        """
        folder = folder.resolve()
        try:
            body: dict[str, Any] = json.loads(read(folder / MATRIX))
        except ValueError as error:
            raise ReportError(f"{folder / MATRIX}: not JSON: {error}") from error
        _check(body, folder)
        try:
            shard = Shard.parse(body["shard"])
        except UsageError as error:
            raise ReportError(f"{folder / MATRIX}: {error}") from error
        plan = body["plan"]
        plan |= {"pairs": tuple(map(_pair_from, plan["pairs"])), "default": _pair_from(plan["default"])}
        results = {name: Ran(**ran | {"earlier": tuple(ran["earlier"])}) for name, ran in body["results"].items()}
        made = cls(folder, Plan(**plan | {"arguments": tuple(plan["arguments"])}), shard, results, body["interrupted"])
        if foreign := set(results) - {pair_id(pair) for pair in made.mine}:
            raise ReportError(f"{folder / MATRIX}: shard {shard} has a result of {min(foreign)}, which is none of it")
        return made


def _pair(pair: Pair) -> dict[str, str]:
    return {**pair.versions(), "class": pair.klass}


def _pair_from(body: Mapping[str, Any]) -> Pair:
    return Pair(body["kubernetes"], body["kueue"], body["kuberay"], body["class"])


def _check(body: Any, folder: Path) -> None:
    error = best_match(_VALIDATOR.iter_errors(body))
    if error is not None:
        raise ReportError(f"{folder / MATRIX}: {error.json_path}: {error.message[:300]}")
