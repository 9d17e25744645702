"""What is known about one test after it ran: the single source of exit code, summary and JUnit.

A record is a value: made in the test's process, carried as a plain dict on pytest's report, written by the owner as
one line of JSON. `record.schema.json` (JSON Schema 2020-12) says what a line may hold; it is checked on writing and
on reading, so that a reader never meets a record that a writer did not mean.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from raykueue.audit.handovers import HandOver
from raykueue.model.events import Moment
from raykueue.model.findings import Finding, Ref, Verdict
from raykueue.report.errors import ReportError

PHASES = ("setup", "call", "judge", "teardown")
"""What a test spends its time on, in order."""

RUN_PREFIX = "run::"
"""Ids of records about the run itself, which no plan lists: `run::unscoped`, `run::problem-1`."""

_VALIDATOR = Draft202012Validator(json.loads(Path(__file__).with_name("record.schema.json").read_text("utf-8")))


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a test ran: its namespace, and for each name in a manifest the name that really was used."""

    namespace: str = ""
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Replaced:
    """A value of a manifest that was another on the cluster, since Ray was real."""

    field: str
    manifest: str
    cluster: str


@dataclass(frozen=True, slots=True)
class JudgedFinding:
    """A finding, and what explains it: "expects", "known:<id>", "allowance:<id>", or nothing ("")."""

    finding: Finding
    explained_by: str = ""

    @property
    def raised(self) -> bool:
        """Nothing explains it, and no other finding already accounts for it."""
        return not self.explained_by and not self.finding.part_of


@dataclass(frozen=True, slots=True)
class Record:
    """One test's result."""

    id: str
    """pytest's node id, or `run::…` for what belongs to no test."""
    suite: str
    sentence: str
    """The requirement: the first paragraph of the test's docstring."""
    verdict: Verdict
    started: str
    """UTC, as `utc()` writes it."""
    reason: str = ""
    """Why skipped, not applicable, infra or known; the one-line message of a failure."""
    absences: tuple[str, ...] = ()
    """Because of what it is not applicable, each as `raykueue.model.applicability` names it: "needs:sidecar-mode"."""
    failure: str = ""
    """The long text of a failure."""
    findings: tuple[JudgedFinding, ...] = ()
    handovers: tuple[HandOver, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds per phase; keys out of `PHASES`."""
    worker: str = ""
    scope: Scope = field(default_factory=Scope)
    notes: tuple[str, ...] = ()
    """Sentences for the summary: what the test learned beyond its verdict."""
    journal: str = ""
    """Relative to the report's folder; empty if none was saved."""
    reproduce: str = ""
    """A command line that runs this test again."""
    moments: Mapping[str, float] = field(default_factory=dict)
    """Measured milliseconds, by name."""
    replaced: tuple[Replaced, ...] = ()

    @property
    def seconds(self) -> float:
        """All phases together."""
        return sum(self.phases.values())

    @property
    def of_run(self) -> bool:
        """About the run itself, so no test."""
        return self.id.startswith(RUN_PREFIX)

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers.

        Raises:
            ReportError: the record breaks the schema, or contradicts itself (see `check`).
        """
        body = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        body |= {
            "verdict": self.verdict.value,
            "absences": list(self.absences),
            "findings": [_finding_dict(judged) for judged in self.findings],
            "handovers": [one.to_json() for one in self.handovers],
            "phases": dict(self.phases),
            "scope": {"namespace": self.scope.namespace, "names": dict(self.scope.names)},
            "notes": list(self.notes),
            "moments": dict(self.moments),
            "replaced": [dataclasses.asdict(each) for each in self.replaced],
        }
        check(body)
        return body

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Record:
        """The inverse of `to_dict`.

        Raises:
            ReportError: as `to_dict`.
        """
        check(body)
        return cls(
            **{
                **body,
                "verdict": Verdict(body["verdict"]),
                "absences": tuple(body["absences"]),
                "findings": tuple(_finding_from(each) for each in body["findings"]),
                "handovers": tuple(HandOver.from_json(each) for each in body["handovers"]),
                "scope": Scope(**body["scope"]),
                "notes": tuple(body["notes"]),
                "replaced": tuple(Replaced(**each) for each in body["replaced"]),
            }
        )


def check(body: Mapping[str, Any]) -> None:
    """Holds a record's dict against the schema, and against itself: what passes has no finding left unexplained.

    Raises:
        ReportError: names the test, the field and what is wrong with it.
    """
    error = best_match(_VALIDATOR.iter_errors(body))
    if error is not None:
        raise ReportError(f"record of {body.get('id', '(no id)')!r}: {error.json_path}: {error.message[:300]}")
    if body["verdict"] in (Verdict.PASS, Verdict.KNOWN):
        for each in body["findings"]:
            if not each["explained_by"] and not each["part_of"]:
                raise ReportError(
                    f"record of {body['id']!r}: the verdict is {body['verdict']}, but nothing explains finding "
                    f"{each['id']} ({each['rule']}): it must be fail"
                )


def encode(record: Record) -> str:
    """One line of JSON, in ASCII, without the line break.

    Raises:
        ReportError: as `Record.to_dict`, or a number is not finite.
    """
    try:
        return json.dumps(record.to_dict(), separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise ReportError(f"record of {record.id!r}: {error}") from error


def decode(line: str) -> Record:
    """The record of one line.

    Raises:
        ReportError: the line is no JSON, or no record.
    """
    try:
        body = json.loads(line)
    except ValueError as error:
        raise ReportError(f"not a record: {line[:80]!r} ({error})") from error
    if not isinstance(body, dict):
        raise ReportError(f"not a record: {line[:80]!r} (expected a JSON object)")
    return Record.from_dict(body)


def utc(now: datetime) -> str:
    """How records and reports write a time: `2026-11-05T10:15:02.123Z`."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def suite_of(test_id: str) -> str:
    """The suite that a node id belongs to: its file's name, without `test_` and `.py`."""
    return PurePosixPath(test_id.split("::", 1)[0]).stem.removeprefix("test_") or "run"


def _finding_dict(judged: JudgedFinding) -> dict[str, Any]:
    body = dataclasses.asdict(judged.finding)
    return body | {
        "objects": list(body["objects"]),
        "seconds": list(body["seconds"]),
        "explained_by": judged.explained_by,
    }


def _finding_from(body: Mapping[str, Any]) -> JudgedFinding:
    fields = {key: value for key, value in body.items() if key != "explained_by"}
    fields |= {
        "objects": tuple(Ref(**each) for each in body["objects"]),
        "begin": Moment(**body["begin"]),
        "end": None if body["end"] is None else Moment(**body["end"]),
        "seconds": tuple(body["seconds"]),
    }
    return JudgedFinding(Finding(**fields), body["explained_by"])
