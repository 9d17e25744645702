"""Reads known-issues.toml and allowances.toml: text in, dataclasses out.

Each is checked against the JSON schema beside this module, which is part of the code like any other constant.
"""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import Any, TypeVar

import jsonschema

from raykueue.audit.bounds import Bounds
from raykueue.audit.explanations import NAMES, Allowance, KnownIssue
from raykueue.model.gates import Gate, Product, Range, both, gate, outside

Row = TypeVar("Row", KnownIssue, Allowance)


def read_known_issues(text: str, where: str = "known-issues.toml") -> list[KnownIssue]:
    """The known issues of a TOML text.

    Raises:
        ValueError: it is not TOML, not as the schema wants it, or names an id twice; says which entry and what to do.
    """
    return _read(text, where, "issue", "known-issues.schema.json", _known_issue)


def read_allowances(text: str, where: str = "allowances.toml") -> list[Allowance]:
    """The allowances of a TOML text. Raises ValueError as `read_known_issues` does."""
    return _read(text, where, "allow", "allowances.schema.json", _allowance)


def _known_issue(row: Mapping[str, Any]) -> KnownIssue:
    return KnownIssue(
        id=row["id"],
        link=row["link"],
        rule=row["rule"],
        cause=row["cause"],
        tests=tuple(row["tests"]),
        occurs=row["occurs"],
        bounds=Bounds.read(row["bounds"], NAMES),
        review=datetime.date.fromisoformat(row["review"]),
        evidence=row.get("evidence", ""),
        absent_in=tuple(row.get("absent_in", ())),
        kueue=_versions(row, "kueue"),
        kuberay=_versions(row, "kuberay"),
    )


def _allowance(row: Mapping[str, Any]) -> Allowance:
    return Allowance(
        id=row["id"],
        rule=row["rule"],
        cause=row["cause"],
        why=row["why"],
        bounds=Bounds.read(row["bounds"], NAMES),
        within_charge=row.get("within_charge", True),
        kueue=_versions(row, "kueue"),
        kuberay=_versions(row, "kuberay"),
    )


def _read(text: str, where: str, table: str, schema: str, build: Callable[[Mapping[str, Any]], Row]) -> list[Row]:
    try:
        body = _plain(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where} is not TOML: {error}; correct it there") from error
    for problem in jsonschema.Draft202012Validator(_schema(schema)).iter_errors(body):
        raise ValueError(f"{where}, {_place(table, body, problem.absolute_path)}: {problem.message}; see {schema}")
    rows: list[Row] = []
    for index, entry in enumerate(body.get(table, ())):
        place = f"{where}, {_place(table, body, (table, index))}"
        try:
            row = build(entry)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error
        if any(other.id == row.id for other in rows):
            raise ValueError(f"{place}: there is another {row.id!r}; give each entry an id of its own")
        rows.append(row)
    return rows


def _versions(row: Mapping[str, Any], product: Product) -> tuple[Range, ...]:
    """Those that the entry is about: in its ranges, with every gate that it needs and none that it lacks."""
    found = _ranges(row.get(product, ())) or (Range(),)
    for name, there in [(n, True) for n in row.get("needs", ())] + [(n, False) for n in row.get("lacks", ())]:
        one = _gate(name)
        if one.product == product:
            found = both(found, one.ranges if there else outside(one.ranges))
    if not found:
        raise ValueError(f"no version of {product} has what it asks for; look at its ranges, `needs` and `lacks`")
    return () if found == (Range(),) else found


def _gate(name: str) -> Gate:
    try:
        found = gate(name)
    except KeyError as error:
        raise ValueError(str(error.args[0])) from error
    if found.product not in ("kueue", "kuberay"):
        raise ValueError(f"gate {name} is of {found.product}; entries are about versions of Kueue and KubeRay")
    return found


def _ranges(ranges: Iterable[Mapping[str, str]]) -> tuple[Range, ...]:
    found = tuple(Range(r.get("since", ""), r.get("before", "")) for r in ranges)
    for one in found:
        _ = "0.0.0" in one  # a malformed version is refused here, not when a finding comes
    return found


def _schema(name: str) -> Any:
    return json.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _place(table: str, body: Mapping[str, Any], path: Iterable[Any]) -> str:
    steps = list(path)
    if len(steps) < 2 or steps[0] != table:
        return "at the top"
    entry = body[table][steps[1]]
    field = "".join(f" {step}" for step in steps[2:])
    return f"[[{table}]] number {steps[1] + 1} ({entry.get('id', 'no id')}){field}"


def _plain(value: Any) -> Any:
    """TOML's own dates as text, for the schema."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.isoformat() if isinstance(value, datetime.date) else value
