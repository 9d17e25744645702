"""A suite's test, run on a journal that was recorded when it ran: the same body, the same rules, no cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from raykueue.audit.explanations import Expect
from raykueue.audit.judge import judge
from raykueue.audit.replay import replay
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.errors import FindingError
from raykueue.kube.client import Api
from raykueue.model.deletion.dimensions import Outcome
from raykueue.model.deletion.expected import Refusal
from raykueue.model.deletion.observed import end
from raykueue.model.events import Event, Header, Record
from raykueue.model.findings import Verdict
from raykueue.model.views import name, namespace, uid
from raykueue.ray.control import RayControl
from raykueue.run.afterwards import Afterwards
from raykueue.run.explanations import allowances, known_issues
from raykueue.run.feed import Feed
from raykueue.run.history import History
from raykueue.run.job import Job
from raykueue.run.journals import load
from raykueue.run.queue import Queue
from raykueue.run.recorder.scopes import ScopeNames
from raykueue.run.refusals import refusal
from raykueue.run.rows import Case, cases
from raykueue.run.timeouts import Timeouts
from suites.deletion_policy import test_table as suite

JOURNALS = Path(__file__).parent / "journals"
AT_ONCE = Timeouts(state=0.1, books=0.1)


class ReplayedJob(Job):
    """A job whose story is over: whatever it is told has happened already."""

    def until(self, *_: object, **__: object) -> Job:
        return self

    def suspend(self) -> Job:
        return self

    def resume(self) -> Job:
        return self

    def end(self, _: Outcome) -> Afterwards:
        ended = end(self.history.feed.events, self.history.uid)
        assert ended is not None
        return Afterwards(self, ended, stop=0.0)


@dataclass
class Replayed:
    """One recorded test."""

    case: Case
    records: list[Record]
    expects: list[Expect] = field(default_factory=list)

    @classmethod
    def of(cls, row: str) -> Replayed:
        """The recorded run of one row of the table."""
        records = load(JOURNALS / f"{row}.jsonl.gz")
        header = cast("Header", records[0])
        return cls(next(case for case in cases(header.pair, "core") if case.row.id == row), records)

    def run(self, case: Case) -> None:
        """Runs the suite's test with this case, and judges what the journal shows.

        Raises:
            AssertionError: as the suite's test does, or what was found is not explained.
        """
        feed = Feed(ScopeNames("replayed"))
        events = [record for record in self.records if isinstance(record, Event)]
        for event in events:
            feed.arrive(event)
        rayjob = next(event.object for event in events if event.kind == "RayJob")
        queue = name(next(event.object for event in events if event.kind == "ClusterQueue"))
        history = History(feed, namespace(rayjob), name(rayjob), uid(rayjob))
        job = ReplayedJob(history, cast("Api", None), cast("RayControl", None), rayjob, AT_ONCE)

        def refused(manifest: Mapping[str, Any]) -> Refusal:
            return refusal(lambda _: job, manifest, AT_ONCE)

        def expect(rule: str, cause: str, **bounds: Any) -> None:
            self.expects.append(Expect.of(rule, cause, **bounds))

        body: Callable[..., None] = suite.test_policy
        body(case, Queue(feed, queue, "user-queue", namespace(rayjob), AT_ONCE), lambda _: job, refused, expect)
        self._judge(Scope(frozenset({namespace(rayjob)}), frozenset({queue})))

    def _judge(self, scope: Scope) -> None:
        header = cast("Header", self.records[0])
        ledger = replay(self.records)
        findings = ledger.findings(scope)
        judgement = judge(
            findings,
            self.expects,
            known_issues(),
            allowances(),
            test="suites/deletion_policy/test_table.py::test_policy",
            pair=header.pair,
            thresholds=Thresholds(),
            circumstances=ledger.circumstances(findings),
            names={"g": 0.0},
        )
        if judgement.verdict is not Verdict.PASS:
            raise FindingError(judgement.text())
