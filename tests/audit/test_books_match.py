from __future__ import annotations

from collections.abc import Iterator

import pytest

from raykueue.audit.answers import Obligation
from raykueue.audit.ledger import Ledger
from raykueue.audit.scope import Scope
from raykueue.model.findings import Finding
from tests.audit.journals import Journal

SCOPE = Scope(frozenset({"team-ns"}), frozenset({"cq"}))


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param, about=("books-match",))


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [f.text for f in findings]
    assert findings[0].rule == "books-match"
    assert findings[0].klass == "contract"
    return findings[0]


def owed_by(ledger: Ledger) -> list[Obligation]:
    return [one for one in ledger.obligations(SCOPE) if one.rule == "books-match"]


def test_f1_a_queue_that_never_books_an_admitted_job_is_found(j: Journal) -> None:
    q = j.at(-5).queue()
    q.books(0, 0)
    a = j.job("a", q)
    j.at(0)
    a.workload.admit()
    j.at(10)
    q.books(2.5, 2.5)
    found = only(j.findings(until=20))
    assert found.cause == "under-booked"
    assert found.peak == {"cpu": 2500}
    assert found.seconds == (7.0, 7.0)  # from settle after the admission to the status
    assert found.resource_seconds == {"cpu": 2500 * 7.0}
    assert found.cluster_queue == "cq"
    assert "2.5 CPU" in found.text
    assert "7000 ms" in found.text


def test_f2_a_queue_that_still_books_a_finished_job_is_found(j: Journal) -> None:
    q = j.at(-5).queue()
    a = j.job("a", q)
    a.workload.admit()
    j.at(-4)
    q.books(2.5, 2.5)
    j.at(0)
    a.workload.finish()
    j.at(10)
    q.books(0, 0)
    found = only(j.findings(until=20))
    assert found.cause == "over-booked"
    assert found.peak == {"cpu": 2500}


def test_f3_usage_of_a_workload_that_only_reserves_is_found(j: Journal) -> None:
    q = j.at(-5).queue()
    q.books(0, 0)
    a = j.job("a", q)
    j.at(0)
    a.workload.reserve()
    j.at(1)
    q.books(2.5, 2.5)
    j.at(10)
    q.books(0, 2.5)
    found = only(j.findings(until=20))
    assert found.cause == "over-booked"
    assert "usage" in found.text
    assert "reservation" not in found.text


def test_f4_only_the_resource_that_is_wrong_is_named(j: Journal) -> None:
    q = j.at(-20).queue(flavors={"default": {"cpu": 3, "memory": "4Gi"}})
    a = j.job("a", q, pods={"head": {"cpu": 1, "memory": "1Gi"}})
    a.workload.admit()
    j.at(-19)
    q.books({"default": {"cpu": 1, "memory": "1Gi"}}, {"default": {"cpu": 1, "memory": "1Gi"}})
    j.at(0)
    a.workload.finish()
    j.at(1)
    q.books({"default": {"memory": "1Gi"}}, {"default": {"memory": "1Gi"}}, n=(0, 0))
    found = only(j.findings(until=20))
    assert found.peak == {"memory": 1 << 30}
    assert found.end is None
    assert "still so" in found.text


def test_f5_borrowing_that_is_not_told_is_found(j: Journal) -> None:
    j.at(-5).queue("lender", cohort="co")
    q = j.queue(cohort="co")
    a = j.job("a", q, pods={"head": 4})
    a.workload.admit()
    j.at(0)
    q.books(4, 4)
    j.at(10)
    q.books(4, 4, borrowed=1)
    found = only(j.findings(until=20))
    assert found.cause == "borrowed"
    assert found.peak == {"cpu": 1000}


def test_a_wrong_number_of_workloads_is_found(j: Journal) -> None:
    q = j.at(-5).queue()
    a = j.job("a", q)
    a.workload.admit()
    j.at(0)
    q.books(2.5, 2.5, n=(2, 1))
    found = only(j.findings(until=20))
    assert found.cause == "miscounted"
    assert "reservingWorkloads says 2 Workloads, should be 1 Workloads" in found.text


def test_a_constant_error_is_known_within_six_seconds(j: Journal) -> None:
    q = j.at(-5).queue()
    q.books(0, 0)
    a = j.job("a", q)
    j.at(0)
    a.workload.admit()
    assert j.findings(until=6.5) == []
    assert only(j.findings(until=6.6)).end is None


def test_s1_a_status_one_second_later_is_fine(j: Journal) -> None:
    q = j.at(-5).queue()
    q.books(0, 0)
    a = j.job("a", q)
    j.at(0)
    a.workload.admit()
    j.at(1.1)
    q.books(2.5, 2.5)
    assert j.findings(until=20) == []


def test_s2_a_status_that_leads_by_the_schedulers_assumption_is_fine(j: Journal) -> None:
    q = j.at(-5).queue()
    a = j.job("a", q)
    j.at(0)
    q.books(2.5, 2.5)
    j.at(0.08)
    a.workload.admit()
    assert j.findings(until=20) == []


def churn(q_lag: float) -> Iterator[tuple[float, int]]:
    """(time, number of jobs) 20 times a second for a minute, never above 6, then none."""
    for tick in range(1200):
        yield tick * 0.05, tick % 7
    yield 60 + q_lag, 0


def test_s3_a_minute_of_churn_inside_the_band_is_fine(j: Journal) -> None:
    q = j.at(-5).queue(cpu=30)
    q.books(0, 0)
    jobs = [j.job(f"a{n}", q, pods={"head": 1}) for n in range(6)]
    running = 0
    published = 0.0
    for t, wanted in churn(0):
        j.at(t)
        while running < wanted:
            jobs[running].workload.admit()
            running += 1
        while running > wanted:
            running -= 1
            jobs[running].workload.release()
        if t - published >= 1:
            published = t
            q.books(running, running, n=(running, running))
    j.at(61)
    q.books(0, 0)
    assert j.findings(until=80) == []


def test_a_wrong_status_is_found_once_the_churn_is_over(j: Journal) -> None:
    q = j.at(-5).queue(cpu=30)
    q.books(0, 0)
    a = j.job("a", q, pods={"head": 1})
    for tick in range(20):
        j.at(tick * 0.5)
        a.workload.admit()
        j.at(tick * 0.5 + 0.2)
        a.workload.release()
        q.books(1, 1)
    assert only(j.findings(until=30)).cause == "over-booked"


def test_s4_a_deactivated_workload_costs_nothing_from_its_spec_write_on(j: Journal) -> None:
    q = j.at(-5).queue()
    a = j.job("a", q)
    a.workload.admit()
    j.at(-4)
    q.books(2.5, 2.5)
    j.at(0)
    a.workload.off()
    j.at(1)
    q.books(0, 0)
    j.at(30)
    a.workload.release()
    assert j.findings(until=40) == []


def down_for(j: Journal, *, put_right: float) -> Journal:
    q = j.at(-5).queue()
    a = j.job("a", q)
    a.workload.admit()
    j.at(-4)
    q.books(2.5, 2.5)
    j.at(0).marker("kueue-down")
    j.at(5)
    a.workload.gone()
    j.at(20).marker("kueue-up")
    j.at(put_right)
    q.books(0, 0)
    return j


def test_s5_while_kueue_is_down_and_warming_up_its_books_may_be_wrong(j: Journal) -> None:
    assert down_for(j, put_right=24).findings(until=60) == []


def test_books_that_stay_wrong_after_a_restart_are_found(j: Journal) -> None:
    found = only(down_for(j, put_right=50).findings(until=60))
    assert found.seconds == (20.0, 20.0)  # ready at 20, warm at 30


def test_s6_a_new_queue_without_status_says_nothing_yet(j: Journal) -> None:
    q = j.at(-5).queue()
    a = j.job("a", q)
    j.at(0)
    a.workload.admit()
    j.at(20)
    q.books(2.5, 2.5)
    assert j.findings(until=40) == []


def test_a_queue_that_is_being_deleted_says_nothing_any_more(j: Journal) -> None:
    q = j.at(-5).queue()
    a = j.job("a", q)
    a.workload.admit()
    j.at(-4)
    q.books(2.5, 2.5)
    q.terminate()
    j.at(0)
    a.workload.finish()
    assert j.findings(until=40) == []


def test_a_flavor_dropped_from_the_spec_is_not_compared(j: Journal) -> None:
    q = j.at(-5).queue(flavors={"default": {"cpu": 3}, "spot": {"cpu": 3}})
    a = j.job("a", q)
    a.workload.admit()
    j.at(-4)
    q.books(2.5, 2.5)
    j.at(0)
    q.edit(spot={"cpu": 3})
    q.books({}, {}, n=(1, 1))
    assert j.findings(until=40) == []


def test_the_test_waits_for_a_status_that_equals_what_is_charged_and_no_longer(j: Journal) -> None:
    q = j.at(-5).queue()
    a = j.job("a", q)
    a.workload.admit()
    j.at(-4)
    q.books(2.5, 2.5)
    j.at(0)
    a.workload.finish()
    (owed,) = owed_by(j.ledger(until=0.1))
    assert owed.rule == "books-match"
    assert "cq" in owed.text
    assert owed.until is not None
    j.at(1)
    q.books(0, 0)
    assert owed_by(j.ledger(until=1)) == []
    assert "books-match" not in {f.rule for f in j.ledger(until=1).findings(SCOPE)}


def test_what_is_owed_ends_when_the_finding_is_there(j: Journal) -> None:
    q = j.at(-5).queue()
    q.books(0, 0)
    a = j.job("a", q)
    j.at(0)
    a.workload.admit()
    (owed,) = owed_by(j.ledger(until=3))
    assert owed.until is not None
    ledger = j.ledger(until=(owed.until - j.now) / 1e9 + 0.001)
    assert owed_by(ledger) == []
    assert "under-booked" in {f.cause for f in ledger.findings(SCOPE)}


def test_a_hold_that_came_and_went_between_two_statuses_is_waited_for_no_longer_than_settling(j: Journal) -> None:
    q = j.at(-5).queue()
    q.books(0, 0)
    a = j.job("a", q)
    j.at(0)
    a.workload.admit()
    j.at(0.2)
    a.workload.release()
    (owed,) = owed_by(j.ledger(until=0.3))
    assert owed.until == j.now + 3 * 10**9
