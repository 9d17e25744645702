from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from raykueue.model.events import Event
from raykueue.run.journals import load
from raykueue.run.recorder.scopes import ScopeNames
from raykueue.run.recording import Recording
from tests.run.fake_recorder import FakeObligation, eventually, recorder

SCOPE = ScopeNames("one", namespaces=("ns-1",), cluster_queues=("cq-1",), flavors=("fl-1",))


def test_a_judgement_returns_the_findings_of_its_scope_as_soon_as_nothing_is_owed(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        recording.open(SCOPE)
        recording.open(ScopeNames("other", namespaces=("ns-2",)))
        run.do(
            lambda api: [api.put("Pod", "bad-1", "ns-1"), api.put("Pod", "bad-2", "ns-2"), api.put("Pod", "bad-3", "x")]
        )
        judged = recording.judge("one")
        assert [(one.id, one.objects[0].name, one.seconds) for one in judged.findings] == [
            ("bad-1", "bad-1", (1.0, 2.0))
        ]
        assert judged.findings == tuple(run.auditor.findings(SCOPE))
        assert judged.handovers == tuple(run.auditor.handovers(SCOPE))
        assert (judged.obligations, judged.problems) == ((), ())
        recording.close("other")
        findings, problems = recording.unscoped()
        assert ([one.id for one in findings], problems) == (["bad-3"], ())
        assert run.auditor.forgotten == ["other"]


def test_a_judgement_goes_on_at_the_event_that_it_waits_for(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        recording.open(SCOPE)
        run.do(lambda api: api.put("Pod", "survivor", "ns-1"))
        run.auditor.owes = lambda auditor: (
            []
            if any(one.type == "DELETED" for one in auditor.folded)
            else [FakeObligation("no-survivors", "the last pod gone", None)]
        )
        answers = []
        thread = threading.Thread(target=lambda: answers.append(recording.judge("one")))
        barriers = len(run.auditor.barriers)
        thread.start()
        eventually(lambda: len(run.auditor.barriers) > barriers)
        assert not answers
        run.do(lambda api: api.remove("Pod", "survivor", "ns-1"))
        thread.join(10)
        assert answers[0].obligations == ()
        assert answers[0].judged_ms < 5000


def test_a_judgement_ends_when_the_last_obligation_has_run_out(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        recording.open(SCOPE)
        until = time.time_ns() + 300_000_000
        run.auditor.owes = lambda _: [FakeObligation("books-match", "an equal status", until)]
        judged = recording.judge("one")
        assert judged.obligations == ()
        assert run.auditor.barriers[-1].arrived > until


def test_a_judgement_returns_what_is_still_owed_at_its_deadline(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        recording.open(SCOPE)
        run.auditor.owes = lambda _: [FakeObligation("nothing-left", "no pod", None)]
        judged = recording.judge("one", deadline_s=0.3)
        assert [one.rule for one in judged.obligations] == ["nothing-left"]


def test_a_problem_ends_a_judgement_at_once(tmp_path: Path) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        recording.open(SCOPE)
        run.auditor.told = ["late: a pod"]
        run.auditor.owes = lambda _: [FakeObligation("nothing-left", "no pod", None)]
        assert recording.judge("one").problems == ("late: a pod",)


def test_a_ledger_that_breaks_costs_no_event_and_lets_nobody_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with recorder(tmp_path) as run, Recording(run.socket) as recording:
        recording.open(SCOPE)
        run.auditor.explode_at = "odd"
        run.do(lambda api: [api.put("Pod", "odd", "ns-1"), api.put("Pod", "next", "ns-1")])
        judged = recording.judge("one")
        assert judged.findings == ()
        assert "the ledger stopped: KeyError" in judged.problems[0]
    events = [one for one in load(tmp_path / "journal.jsonl") if isinstance(one, Event)]
    assert [one.object["metadata"]["name"] for one in events] == ["odd", "next"]
    assert "KeyError" in capsys.readouterr().err
