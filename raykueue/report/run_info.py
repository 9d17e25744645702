"""What is known about a run as a whole, and a report as a value: the run and its records."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from raykueue.report.errors import ReportError
from raykueue.report.record import Record

_VALIDATOR = Draft202012Validator(json.loads(Path(__file__).with_name("run.schema.json").read_text("utf-8")))
FORMAT = 2
"""Of run.json, and of the records beside it. Other versions are not read."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the owner knows about its run at the end, and the records don't."""

    tier: str
    profile: str
    versions: Mapping[str, str] = field(default_factory=dict)
    """What ran, or was used to make it, beside Kueue and KubeRay: {"kubernetes": "1.34.11", "ray": "2.52.0", …}.

    Kubernetes as the API server said it: on kind it is the one of the node image.
    """
    timings: Mapping[str, float] = field(default_factory=dict)
    """Seconds of the run outside its tests, in order: {"cluster start": 9.1, "controllers": 4.2, …}."""
    known_links: Mapping[str, str] = field(default_factory=dict)
    """Where a known defect is described, by its id."""
    lock_digest: str = ""
    """Of versions.toml."""
    suite_version: str = ""
    commit: str = ""
    """Of the suite's own repository, `-dirty-` and a digest of the changes behind it; empty if unknown."""
    drift: tuple[str, ...] = ()
    """How what ran differs from what was pinned, a sentence each: then the verdict is about something else."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The contents of run.json."""

    pair: Mapping[str, str]
    """As it was asked for: {"kueue": "0.19.2", "kuberay": "1.6.2", "kubernetes": "1.34.4"}"""
    backend: str
    started: str
    finished: str
    facts: RunFacts
    planned: int
    counts: Mapping[str, int]
    """Records per verdict."""
    interrupted: bool
    exit_code: int
    files: Mapping[str, str] = field(default_factory=dict)
    """sha256 of every file of the folder but run.json, by its path relative to the folder."""

    @property
    def wall_seconds(self) -> float:
        """From start to finish."""
        return (moment(self.finished) - moment(self.started)).total_seconds()

    def encode(self) -> str:
        """The text of run.json.

        Raises:
            ReportError: a value breaks run.schema.json.
        """
        body = {"format": FORMAT} | {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        body |= dataclasses.asdict(body.pop("facts"))
        body |= {"pair": dict(self.pair), "counts": dict(self.counts), "files": dict(self.files)}
        body["drift"] = list(self.facts.drift)
        _check(body)
        return json.dumps(body, indent=2, allow_nan=False) + "\n"

    @classmethod
    def decode(cls, text: str) -> RunInfo:
        """The inverse of `encode`.

        Raises:
            ReportError: the text is no JSON, or breaks run.schema.json.
        """
        try:
            body: dict[str, Any] = json.loads(text)
        except ValueError as error:
            raise ReportError(f"run.json is not JSON: {error}") from error
        _check(body)
        body.pop("format")
        body["drift"] = tuple(body.get("drift", ()))
        facts = RunFacts(**{f.name: body.pop(f.name) for f in dataclasses.fields(RunFacts)})
        return cls(facts=facts, **body)


@dataclass(frozen=True, slots=True)
class LoadedReport:
    """A finished report: what the run was, and one record per test in the order of the plan."""

    folder: Path
    run: RunInfo
    records: tuple[Record, ...]


def moment(text: str) -> datetime:
    """A time as reports write it."""
    return datetime.fromisoformat(text)


def _check(body: Any) -> None:
    error = best_match(_VALIDATOR.iter_errors(body))
    if error is not None:
        raise ReportError(f"run.json: {error.json_path}: {error.message[:300]}")
