"""Real report folders for the tests of the gate, made by the library's own writer."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from raykueue.matrix.matrix_file import MatrixFile, Plan, Ran
from raykueue.matrix.selection import Shard, pair_id
from raykueue.model.applicability import tier_of
from raykueue.model.versions import Pair, Versions
from raykueue.report.folder import ReportFolder
from raykueue.report.gate.belonging import Suite
from raykueue.report.gate.command import _versions
from raykueue.report.gate.decision import Decision, Question, decide
from raykueue.report.gate.evidence import gather
from raykueue.report.gate.required import parse
from raykueue.report.record import Record, suite_of
from raykueue.report.run_info import RunFacts
from tests.report.samples import FACTS, record

VERSIONS: Versions = _versions()
NOW = datetime.datetime(2026, 11, 5, 10, 15, 2, tzinfo=datetime.UTC)
ASKED = NOW + datetime.timedelta(minutes=5)
"""When the gate is asked, if nothing else is said."""
SUITE = Suite(VERSIONS, "0.1.0", FACTS.commit)
IDS = [f"suites/walkthrough/test_deploy.py::test_{name}" for name in ("a", "b", "c")]
VARYING = "suites/submission/test_outcome.py::test_varies[sidecar]"
REQUIRED = f"""
format = 1
default = "one"
[sets.always]
about = "must run"
must_run = true
tests = {json.dumps(IDS)}
[sets.varying]
about = "may be absent"
must_run = false
tests = ["{VARYING}"]
[gates.one]
about = "the default pair"
[[gates.one.require]]
pairs = ["default"]
backend = "embedded"
sets = ["always", "varying"]
[gates.two]
about = "named pairs"
[[gates.two.require]]
pairs = ["named"]
backend = "embedded"
sets = ["always"]
"""


def a_record(test: str, **changes: Any) -> Record:
    """Of a test that passed."""
    return record(test, suite=suite_of(test), **changes)


def write(
    base: Path,
    records: Iterable[Record] | None = None,
    *,
    pair: Pair = VERSIONS.default,
    backend: str = "embedded",
    planned: Iterable[str] | None = None,
    interrupted: bool = False,
    problems: Iterable[str] = (),
    started: datetime.datetime = NOW,
    **facts: Any,
) -> Path:
    """A finished report of these records (all that gate `one` requires, passed); returns its folder."""
    every = [a_record(test) for test in (*IDS, VARYING)] if records is None else list(records)
    folder = ReportFolder.create(base, pair.versions(), backend, started)
    folder.plan(list(planned) if planned is not None else [one.id for one in every])
    for one in every:
        folder.add(one)
    real = {"lock_digest": VERSIONS.digest(pair, backend), "tier": tier_of(backend)}
    about: RunFacts = dataclasses.replace(FACTS, **{**real, **facts})
    end = started + datetime.timedelta(seconds=68)
    folder.finish(about, end, problems=list(problems), interrupted=interrupted)
    return folder.path


def a_matrix(
    folder: Path, results: Mapping[Pair, Ran], pairs: Sequence[Pair] = (VERSIONS.default,), **changes: Any
) -> Path:
    """What `raykueue matrix run` leaves beside these reports, written by its own writer; returns its folder."""
    plan = Plan(tuple(pairs), VERSIONS.default, "core", (), "5f" * 32, SUITE.version, FACTS.commit)
    plan = dataclasses.replace(plan, **{name: changes.pop(name) for name in ("profile", "commit") if name in changes})
    folder.mkdir(exist_ok=True)
    MatrixFile(folder, plan, Shard(), {pair_id(pair): ran for pair, ran in results.items()}, **changes).save()
    return folder


def forge(report: Path, **changes: Any) -> None:
    """Changes run.json, and makes its digests true: damage that only the contents can show."""
    run = json.loads((report / "run.json").read_text())
    run["files"] = {name: hashlib.sha256((report / name).read_bytes()).hexdigest() for name in run["files"]}
    (report / "run.json").write_text(json.dumps(run | changes))


def question(required: str = REQUIRED, gate: str | None = None, **changes: Any) -> Question:
    """As the command puts it, soon after the samples ran, and without known issues and allowances."""
    asked = Question(parse(required).gate(gate), SUITE, (), (), ASKED)
    return dataclasses.replace(asked, **changes)


def answer(*folders: Path, baseline: Path | None = None, **asked: Any) -> Decision:
    """The gate's answer about folders on disk."""
    before = gather([baseline]) if baseline is not None else None
    return decide(question(**asked), gather(folders), before)


def kinds(decision: Decision) -> Mapping[str, int]:
    """How many objections of each kind."""
    found: dict[str, int] = {}
    for one in decision.objections:
        found[one.kind] = found.get(one.kind, 0) + 1
    return found
