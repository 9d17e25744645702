"""What must have run before a gate opens: ci/required.toml, understood. Pure."""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from raykueue.errors import UsageError
from raykueue.model.deletion.dimensions import Row
from raykueue.model.deletion.expected import Part
from raykueue.model.deletion.laws import expected
from raykueue.model.deletion.selection import core, handing_over, smoke
from raykueue.model.versions import Pair, Versions

_VALIDATOR = Draft202012Validator(json.loads(Path(__file__).with_name("required.schema.json").read_text("utf-8")))
_PODS = frozenset({Part.HEAD, Part.WORKERS})


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One pair on one kind of cluster: what a test is required on."""

    kueue: str
    kuberay: str
    kubernetes: str
    backend: str

    @classmethod
    def of(cls, pair: Mapping[str, str], backend: str) -> Cell:
        """From versions by product."""
        return cls(pair["kueue"], pair["kuberay"], pair.get("kubernetes", ""), backend)

    @property
    def pair(self) -> dict[str, str]:
        """Versions by product."""
        return {"kueue": self.kueue, "kuberay": self.kuberay, "kubernetes": self.kubernetes}

    def __str__(self) -> str:
        return f"Kueue {self.kueue} + KubeRay {self.kuberay} on Kubernetes {self.kubernetes}, {self.backend}"


@dataclass(frozen=True, slots=True)
class TestSet:
    """Tests that are required together."""

    __test__ = False  # its name would make pytest collect it

    name: str
    must_run: bool
    tests: tuple[str, ...]

    def ids(self, pair: Mapping[str, str]) -> list[str]:
        """With the rows of the deletion table that this pair has."""
        return [test for pattern in self.tests for test in _spelled_out(pattern, pair)]


@dataclass(frozen=True, slots=True)
class Retired:
    """Tests that may be missing though the baseline has them."""

    tests: tuple[str, ...]
    why: str
    until: datetime.date

    def covers(self, test: str, today: datetime.date) -> bool:
        """The test is among them, and the time is not up."""
        return today <= self.until and any(fnmatchcase(test, pattern) for pattern in self.tests)


@dataclass(frozen=True, slots=True)
class Requirement:
    """Sets, on every pair of some classes, on one kind of cluster."""

    pairs: tuple[str, ...]
    backend: str
    sets: tuple[TestSet, ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate of the file."""

    name: str
    requirements: tuple[Requirement, ...]
    retired: tuple[Retired, ...]

    def cells(self, versions: Versions, named: Sequence[Pair]) -> dict[Cell, dict[str, bool]]:
        """Cell → ids that are required there → whether they must run, or may be found not to apply.

        Raises:
            UsageError: a class has no pair, or pairs are named and the gate has no place for them (or lacks them).
        """
        if named and not any("named" in each.pairs for each in self.requirements):
            raise UsageError(f"gate {self.name} has its pairs from versions.toml: --pair is for gates that ask for it")
        cells: dict[Cell, dict[str, bool]] = {}
        for requirement in self.requirements:
            for pair in self._pairs(requirement, versions, named):
                required = cells.setdefault(Cell.of(pair.versions(), requirement.backend), {})
                for tests in requirement.sets:
                    for test in tests.ids(pair.versions()):
                        required[test] = required.get(test, False) or tests.must_run
        return cells

    def _pairs(self, requirement: Requirement, versions: Versions, named: Sequence[Pair]) -> Iterator[Pair]:
        for klass in requirement.pairs:
            found = {"default": [versions.default], "named": list(named)}.get(
                klass, [pair for pair in versions.pairs if pair.klass == klass]
            )
            if not found:
                hint = "name it with --pair KUEUE+KUBERAY" if klass == "named" else "versions.toml has none"
                raise UsageError(f"gate {self.name} requires a pair ({klass}): {hint}")
            yield from found


@dataclass(frozen=True, slots=True)
class Required:
    """The whole file."""

    default: str
    sets: Mapping[str, TestSet]
    gates: Mapping[str, Gate]

    def gate(self, name: str | None) -> Gate:
        """The gate of this name, or the default one.

        Raises:
            UsageError: there is none; the message lists those that exist.
        """
        chosen = name or self.default
        if chosen not in self.gates:
            raise UsageError(f"gate {chosen!r} is not known; known: {', '.join(sorted(self.gates))}")
        return self.gates[chosen]


def parse(text: str, name: str = "required.toml") -> Required:
    """Reads the text of ci/required.toml.

    Raises:
        UsageError: it is not TOML, breaks required.schema.json, or names a set or gate that it doesn't have.
    """
    try:
        body = tomllib.loads(text)
        error = best_match(_VALIDATOR.iter_errors(body))
        if error is not None:
            raise UsageError(f"{error.json_path}: {error.message[:300]}")
        return _read(body)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: not TOML: {error}") from error
    except (UsageError, ValueError) as error:
        raise UsageError(f"{name}: {error}") from error


def _read(body: Mapping[str, Any]) -> Required:
    sets = {name: TestSet(name, each["must_run"], tuple(each["tests"])) for name, each in body["sets"].items()}
    retired = tuple(
        Retired(tuple(each["tests"]), each["why"], datetime.date.fromisoformat(each["until"]))
        for each in body.get("retired", ())
    )
    gates = {
        name: Gate(name, tuple(_requirement(name, one, sets) for one in each["require"]), retired)
        for name, each in body["gates"].items()
    }
    required = Required(body["default"], sets, gates)
    required.gate(None)
    return required


def _requirement(gate: str, body: Mapping[str, Any], sets: Mapping[str, TestSet]) -> Requirement:
    unknown = [name for name in body["sets"] if name not in sets]
    if unknown:
        raise UsageError(f"gate {gate} requires set {unknown[0]!r}, which is not there; known: {', '.join(sets)}")
    return Requirement(tuple(body["pairs"]), body["backend"], tuple(sets[name] for name in body["sets"]))


def _spelled_out(pattern: str, pair: Mapping[str, str]) -> Iterator[str]:
    test, brace, rows = pattern.partition("{")
    if not brace:
        yield pattern
        return
    for row in _ROWS[rows.partition("}")[0]](pair):
        yield f"{test}{row.id}]"


def _leaving(pair: Mapping[str, str]) -> list[Row]:
    return [row for row in handing_over(pair) if not expected(row, pair).kept & _PODS]


def _staying(pair: Mapping[str, str]) -> list[Row]:
    return [row for row in handing_over(pair) if expected(row, pair).kept & _PODS]


_ROWS: Mapping[str, Callable[[Mapping[str, str]], Sequence[Row]]] = {
    "smoke": smoke,
    "core": core,
    "leaving": _leaving,
    "staying": _staying,
}
"""As fixtures/rows.py multiplies tests; a test of this repository holds the two together."""
