from __future__ import annotations

from typing import Any

import pytest

from raykueue.audit.rules.finished_stays_finished import FinishedStaysFinished
from raykueue.audit.scope import Scope
from raykueue.model.events import Event
from raykueue.model.findings import Finding
from tests.audit.journals import NAMESPACE, Job, Journal

RULE = "finished-stays-finished"
SCOPE = Scope(frozenset({NAMESPACE}), frozenset({"cq"}))


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param, about=(RULE,))


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [f.text for f in findings]
    return findings[0]


def running(j: Journal, **settings: Any) -> Job:
    a = j.at(-10).job("a", j.queue(), **settings)
    a.workload.admit()
    a.suspend(False)
    a.state("Running", "RUNNING")
    return a


def finished(j: Journal, **settings: Any) -> Job:
    a = running(j, **settings)
    a.state("Complete", "SUCCEEDED")
    a.workload.finish()
    return a


def unfinish(a: Job) -> None:
    a.workload.condition("Finished", False)
    a.workload.write()


def test_f1_a_finished_workload_that_is_unfinished_again(j: Journal) -> None:
    a = finished(j)
    a.workload.release()
    j.at(0)
    unfinish(a)
    j.at(4)
    a.workload.finish()
    found = only(j.findings(until=10))
    assert (found.cause, found.klass, found.seconds) == ("unfinished", "contract", (4.0, 4.0))
    assert [r.kind for r in found.objects] == ["RayJob", "Workload"]
    assert found.peak == {}
    assert "rayjob-a-1 of RayJob team-ns/a is unfinished again (Succeeded), for 4000 ms" in found.text


def test_what_an_unfinished_workload_holds_again_is_measured_and_blamed_once(j: Journal) -> None:
    a = finished(j)
    j.at(0)
    unfinish(a)
    j.at(4)
    a.workload.finish()
    raised = [f for f in j.findings(until=10) if not f.part_of]
    found = only(raised)
    assert (found.cause, found.payer) == ("unfinished", f"{a.workload.uid}#2")
    assert found.peak == {"cpu": 2500}
    assert found.resource_seconds == {"cpu": 10_000.0}
    (part,) = (f for f in j.findings(until=10) if f.part_of)
    assert (part.cause, part.part_of) == ("held-after-finish", found.id)


def test_what_an_unfinished_workload_gains_later_is_part_of_it(j: Journal) -> None:
    a = finished(j)
    a.workload.release()
    j.at(0)
    unfinish(a)
    j.at(2)
    a.workload.admit()
    j.at(5)
    a.workload.release()
    found = only([f for f in j.findings(until=10) if not f.part_of])
    assert (found.cause, found.end) == ("unfinished", None)
    assert found.resource_seconds == {"cpu": 7500.0}
    assert [f.part_of for f in j.findings(until=10) if f.part_of] == [found.id]


def test_an_admission_that_overtakes_the_end_of_a_deleted_job_has_a_cause_of_its_own(j: Journal) -> None:
    """As Kueue 0.19.2 does it: the scheduler's patch of the conditions drops Finished."""
    a = j.at(0).job("a", j.queue())
    a.workload.write()
    a.terminate()
    a.workload.finish("OwnerNotFound")
    a.gone()
    j.at(1)
    a.workload.body["status"]["conditions"] = []
    a.workload.admit()
    j.at(1.4)
    a.workload.finish("OwnerNotFound")
    a.workload.gone()
    found = only(j.findings(until=10))
    assert (found.cause, found.klass, found.seconds) == ("admitted-after-deletion", "contract", (0.4, 0.4))
    assert found.resource_seconds == {"cpu": 1000.0}
    assert "gained quota, and is unfinished again (OwnerNotFound) (2.5 CPU), for 400 ms" in found.text


@pytest.mark.parametrize(("reason", "gains"), [("OwnerNotFound", False), ("Succeeded", True)])
def test_only_both_together_make_that_cause(j: Journal, reason: str, gains: bool) -> None:
    a = j.at(0).job("a", j.queue())
    a.workload.finish(reason)
    a.workload.body["status"]["conditions"] = []
    if gains:
        a.workload.admit()
    else:
        a.workload.write()
    assert only(j.findings(until=10)).cause == "unfinished"


def test_a_workload_of_no_job_is_told_by_itself(j: Journal) -> None:
    a = j.at(0).job("a", j.queue())
    a.workload.body["metadata"]["ownerReferences"] = []
    a.workload.finish()
    unfinish(a)
    found = only(j.findings(until=10))
    assert [r.kind for r in found.objects] == ["Workload"]
    assert found.text.startswith("Workload team-ns/rayjob-a-1 is unfinished again")


def test_a_workload_that_is_gone_is_unfinished_no_longer(j: Journal) -> None:
    a = finished(j)
    a.workload.release()
    j.at(0)
    unfinish(a)
    j.at(3)
    a.workload.gone()
    assert only(j.findings(until=10)).seconds == (3.0, 3.0)


@pytest.mark.parametrize(("reason", "klass"), [("Succeeded", "contract"), ("OwnerNotFound", "hazard")])
def test_f2_a_finished_workload_that_reserves_quota(j: Journal, reason: str, klass: str) -> None:
    a = running(j)
    a.workload.release()
    a.workload.finish(reason)
    j.at(0)
    a.workload.reserve()
    j.at(2)
    a.workload.release()
    found = only(j.findings(until=10))
    assert (found.cause, found.klass, found.seconds) == ("reserved-again", klass, (2.0, 2.0))
    assert f"gained QuotaReserved after it was finished ({reason})" in found.text


def test_one_that_never_had_quota_must_not_gain_it_after_it_finished(j: Journal) -> None:
    a = j.at(0).job("a", j.queue())
    a.workload.write()
    a.workload.finish()
    a.workload.reserve()
    assert only(j.findings(until=10)).cause == "reserved-again"


def test_f3_another_workload_of_a_finished_job_that_gains_quota(j: Journal) -> None:
    a = finished(j)
    j.at(0)
    second = a.another_workload()
    second.admit()
    j.at(4)
    second.finish()
    found = only(j.findings(until=10))
    assert (found.cause, found.klass, found.payer) == ("held-after-finish", "contract", f"{second.uid}#1")
    assert found.seconds == (4.0, 4.0)
    assert found.peak == {"cpu": 2500}
    assert found.resource_seconds == {"cpu": 10_000.0}
    assert found.cluster_queue == "cq"
    assert "gained quota after its job was Complete (2.5 CPU), for 4000 ms" in found.text


def test_a_hold_after_the_end_is_measured_as_it_is_charged(j: Journal) -> None:
    a = finished(j)
    j.at(0)
    second = a.another_workload(counts={"workers": 3})
    second.admit()
    j.at(2)
    second.scale("workers", 1)
    found = only(j.findings(until=4))
    assert found.peak == {"cpu": 4500}
    assert found.resource_seconds == {"cpu": 2 * 4500.0 + 2 * 2500.0}


@pytest.mark.parametrize("end", ["Complete", "Failed"])
def test_f4_a_finished_job_that_runs_again(j: Journal, end: str) -> None:
    a = running(j)
    a.state(end)
    j.at(0)
    a.state("Running")
    j.at(3)
    a.state("Complete")
    found = only(j.findings(until=10))
    assert (found.cause, found.klass, found.seconds) == ("job-restarted", "contract", (3.0, 3.0))
    assert found.text == f"RayJob team-ns/a went from {end} to Running, for 3000 ms"
    assert [r.kind for r in found.objects] == ["RayJob"]


def test_a_finished_job_that_is_new_again_runs_until_it_is_gone(j: Journal) -> None:
    a = finished(j)
    j.at(0)
    a.state("")
    j.at(3)
    a.gone()
    found = only(j.findings(until=10))
    assert found.seconds == (3.0, 3.0)
    assert "went from Complete to New" in found.text


def test_a_window_of_no_time_between_two_revisions_is_real(j: Journal) -> None:
    a = finished(j)
    a.state("Running")
    a.state("Complete")
    found = only(j.findings(until=10))
    assert found.seconds == (0.0, 0.0)
    assert found.end is not None
    assert found.begin.rev < found.end.rev


def test_s1_a_finished_workload_keeps_its_reservation_for_ever(j: Journal) -> None:
    a = finished(j)
    j.at(50)
    a.workload.write()
    assert j.findings(until=100) == []


@pytest.mark.parametrize("same_write", [True, False])
def test_s2_a_finished_workload_may_drop_its_reservation_once(j: Journal, same_write: bool) -> None:
    a = running(j)
    a.state("Complete")
    if not same_write:
        a.workload.finish()
    a.workload.condition("Finished", True)
    a.workload.release()
    assert j.findings(until=100) == []


def test_a_workload_that_finishes_in_the_write_that_reserves_was_not_finished_before(j: Journal) -> None:
    a = j.at(0).job("a", j.queue())
    a.workload.write()
    a.workload.condition("Finished", True)
    a.workload.reserve()
    assert j.findings(until=100) == []


def test_s3_a_finished_workload_may_go(j: Journal) -> None:
    a = finished(j)
    a.workload.gone()
    assert j.findings(until=100) == []


def test_s4_a_job_that_retries_before_it_completes_is_fine(j: Journal) -> None:
    a = running(j)
    a.state("Retrying")
    a.state("")
    a.state("Running")
    a.state("Complete")
    assert j.findings(until=100) == []


def test_s5_a_job_made_again_under_the_same_name_may_gain_quota(j: Journal) -> None:
    a = finished(j)
    a.gone()
    again = j.job("a", a.queue)
    again.workload.admit()
    again.state("Running")
    assert j.findings(until=100) == []


def test_a_job_may_go_from_failed_to_complete(j: Journal) -> None:
    a = running(j)
    a.state("Failed")
    a.state("Complete")
    assert j.findings(until=100) == []


def test_an_invalid_job_is_not_over(j: Journal) -> None:
    a = running(j)
    a.state("ValidationFailed")
    a.state("Running")
    assert j.findings(until=100) == []


def test_what_multikueue_copies_is_not_judged(j: Journal) -> None:
    a = finished(j, managedBy="kueue.x-k8s.io/multikueue")
    a.state("Running")
    a.state("Complete")
    a.another_workload().admit()
    assert j.findings(until=100) == []


def test_a_hold_that_was_there_before_the_journal_is_not_new(j: Journal) -> None:
    a = running(j)
    a.state("Complete", "SUCCEEDED")
    j.records = [
        Event(e.kind, "ADDED", e.rev, e.arrived, e.object, True) for e in j.records[-1:] if isinstance(e, Event)
    ]
    a.workload.write()
    held = j.records.pop()
    assert isinstance(held, Event)
    j.records.append(Event(held.kind, "ADDED", held.rev, held.arrived, held.object, True))
    assert j.findings(until=100) == []


def test_a_job_that_nobody_queued_stays_finished_too(j: Journal) -> None:
    a = j.at(0).job("a", j.queue(), labelled=False)
    a.state("Complete")
    a.state("Running")
    assert only(j.findings(until=10)).cause == "job-restarted"


def test_nothing_is_waited_for(j: Journal) -> None:
    a = finished(j)
    a.state("Running")
    assert [o for o in j.ledger(until=10).obligations(SCOPE) if o.rule == RULE] == []


def test_a_forgotten_scope_leaves_nothing_behind(j: Journal) -> None:
    a = finished(j)
    unfinish(a)
    a.state("Running")
    ledger = j.ledger(until=10)
    assert {f.cause for f in ledger.findings(SCOPE) if f.rule == RULE} >= {"unfinished", "job-restarted"}
    ledger.forget(SCOPE)
    (rule,) = (rule for rule in ledger._rules if isinstance(rule, FinishedStaysFinished))
    assert (rule._open, rule._found) == ({}, [])


def test_a_healthy_job_leaves_nothing_behind(j: Journal) -> None:
    finished(j)
    ledger = j.ledger(until=10)
    (rule,) = (rule for rule in ledger._rules if isinstance(rule, FinishedStaysFinished))
    assert (rule._open, rule._found) == ({}, [])
