from types import SimpleNamespace
from typing import Any, cast

from raykueue.model.events import Moment
from raykueue.model.findings import Finding
from raykueue.run.canary import SEEN, Canary


def finding(rule: str, cause: str, peak: dict[str, int]) -> Finding:
    return Finding("id", rule, "contract", cause, "text of it", (), Moment(1, 1), None, peak=peak)


def canary(*findings: Finding) -> Canary:
    recording = SimpleNamespace(judge=lambda _scope, **_: SimpleNamespace(findings=findings))
    return Canary(cast(Any, None), cast(Any, recording))


def test_a_run_whose_ledger_sees_the_canary_proves_something() -> None:
    assert canary(finding("pods-covered", "never-charged", SEEN)).check() == ""


def test_a_blind_ledger_spoils_the_run() -> None:
    why = canary().check()

    assert "the canary was not seen" in why
    assert "the ledger saw nothing" in why


def test_a_ledger_that_sees_another_amount_spoils_the_run() -> None:
    assert "text of it" in canary(finding("pods-covered", "never-charged", {"cpu": 999})).check()


def test_another_finding_is_no_canary() -> None:
    assert canary(finding("no-survivors", "never-charged", SEEN)).check() != ""
