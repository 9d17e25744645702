"""Every known issue has evidence: a journal that was recorded, whose replay yields exactly that finding."""

from __future__ import annotations

from pathlib import Path

import pytest

import raykueue
from raykueue.audit.explanations import KnownIssue, of_pair
from raykueue.audit.judge import judge
from raykueue.audit.replay import replay
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.model.deletion.suspended_clean_up import suspended_clean_up
from raykueue.model.deletion.unmatched import unmatched
from raykueue.model.events import Event, Header
from raykueue.model.findings import Finding
from raykueue.model.views import namespace, uid
from raykueue.run.explanations import allowances, known_issues
from raykueue.run.journals import load

FOLDER = Path(raykueue.__file__).parent / "evidence"
LIMIT = 60 * 1024
RECORDED = [issue for issue in known_issues() if issue.evidence]


def found(path: Path) -> tuple[Header, list[Finding]]:
    records = load(path)
    header = records[0]
    assert isinstance(header, Header)
    events = [record for record in records if isinstance(record, Event)]
    jobs = {uid(event.object): namespace(event.object) for event in events if event.kind == "RayJob"}
    ledger = replay(records)
    findings = ledger.findings(Scope(namespaces=frozenset(jobs.values())))
    rules = [look(events, job) for job in jobs for look in (unmatched, suspended_clean_up)]
    return header, [*(one for one in findings if not one.part_of), *(one for one in rules if one is not None)]


@pytest.mark.parametrize("issue", RECORDED, ids=[issue.id for issue in RECORDED])
def test_the_evidence_of_an_issue_shows_exactly_its_finding(issue: KnownIssue) -> None:
    header, findings = found(FOLDER / issue.evidence)
    assert of_pair(issue, header.pair)
    # What a pair does in ordinary operation, and other issues of the same test, may be in there as well; nothing else.
    judgement = judge(
        findings,
        [],
        known_issues(),
        allowances(),
        test=issue.tests[0],
        pair=header.pair,
        thresholds=Thresholds(),
        names={"g": 0.0, "ttl": 0.0},
    )
    assert judgement.text() == ""
    assert [one.what for one in judgement.explained if one.by == "known"].count(issue.id) == 1


def test_every_issue_has_evidence_and_every_journal_an_issue() -> None:
    assert [issue.id for issue in known_issues() if not issue.evidence] == []
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(issue.evidence for issue in RECORDED)


def test_evidence_is_small() -> None:
    assert [path.name for path in FOLDER.iterdir() if path.stat().st_size > LIMIT] == []
