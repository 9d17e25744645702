from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

import pytest

from raykueue.audit.books.fold import Books
from raykueue.audit.judge import judge
from raykueue.audit.rules.over_use import OverUse
from raykueue.audit.scope import Scope
from raykueue.audit.tables import read_allowances
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Event, Moment
from raykueue.model.findings import Finding
from tests.audit.journals import EPOCH, NAMESPACE, PAIR, Job, Journal, Pod, Queue

SCOPE = Scope(frozenset({NAMESPACE}), frozenset({"cq"}))
RULES = ("pods-covered", "no-survivors", "no-overlap", "quota-respected")


@pytest.fixture(params=["v1beta1", "v1beta2"])
def j(request: pytest.FixtureRequest) -> Journal:
    return Journal(request.param, about=RULES)


def only(findings: Sequence[Finding]) -> Finding:
    assert len(findings) == 1, [f.text for f in findings]
    return findings[0]


def by_rule(findings: Sequence[Finding]) -> dict[str, Finding]:
    assert len({f.rule for f in findings}) == len(findings), [f.text for f in findings]
    return {f.rule: f for f in findings}


def running(j: Journal, name: str, queue: Queue, **settings: Any) -> tuple[Job, list[Pod]]:
    a = j.job(name, queue, **settings)
    a.workload.admit()
    return a, a.start()


def test_s1_a_quota_lowered_while_it_is_used_is_told_and_no_broken_promise(j: Journal) -> None:
    q = j.at(0).queue()
    _, pods = running(j, "a", q)
    j.at(10)
    q.edit(default={"cpu": 1})
    j.at(20)
    pods[0].end()
    j.at(4000)
    for pod in pods[1:]:
        pod.end()
    found = only(j.findings(until=5000))
    assert (found.rule, found.cause, found.klass) == ("quota-respected", "quota-edited", "hazard")
    assert (found.cluster_queue, found.namespace, found.objects[0].name) == ("cq", "", "cq")
    assert found.peak == {"cpu": 1500}
    assert found.seconds == (3990.0, 3990.0)
    assert found.resource_seconds == {"cpu": 1500.0 * 10 + 500.0 * 3980}
    assert found.text.startswith("ClusterQueue cq used 1.5 CPU more than its quota")
    allowances = read_allowances(resources.files("raykueue").joinpath("allowances.toml").read_text(encoding="utf-8"))
    judged = judge([found], [], [], allowances, test="t", pair=PAIR, thresholds=Thresholds())
    assert [(one.by, one.what) for one in judged.explained] == [("allows", "quota-edited-while-it-was-used")]


def test_a_quota_lowered_before_the_pods_came_is_exceeded_only_from_then_on(j: Journal) -> None:
    q = j.at(0).queue()
    a = j.job("a", q)
    a.workload.admit()
    q.edit(default={"cpu": 1})
    j.at(10)
    a.start()
    assert only(j.findings(until=15)).seconds == (5.0, 5.0)


def test_an_edited_quota_that_is_still_enough_is_not_told(j: Journal) -> None:
    q = j.at(0).queue()
    running(j, "a", q)
    q.edit(default={"cpu": 2.5})
    assert j.findings(until=15) == []


def test_a_cohort_that_is_deleted_leaves_its_queues_over(j: Journal) -> None:
    pool = j.at(0).cohort("co", flavors={"default": {"cpu": 2}})
    q = j.queue(cpu=1, cohort="co")
    running(j, "a", q)
    j.at(5)
    pool.gone()
    found = only(j.findings(until=15))
    assert (found.cause, found.peak, found.cluster_queue) == ("quota-edited", {"cpu": 1500}, "cq")
    assert found.text.startswith("Cohort co used")


def test_a_queue_that_leaves_its_cohort_is_over_itself(j: Journal) -> None:
    q = j.at(0).queue(cpu=1, cohort="co")
    j.queue("b", cpu=2, cohort="co")
    running(j, "a", q)
    j.at(5)
    q.body["spec"].pop("cohort", None)
    q.body["spec"].pop("cohortName", None)
    q.edit(default={"cpu": 1})
    found = only(j.findings(until=15))
    assert (found.cause, found.peak) == ("quota-edited", {"cpu": 1500})
    assert found.text.startswith("ClusterQueue cq used")


def test_use_beyond_a_borrowing_limit_is_told_where_the_limit_is(j: Journal) -> None:
    q = j.at(0).queue(flavors={"default": {"cpu": (1, 2, None)}}, cohort="co")
    j.queue("b", cpu=9, cohort="co")
    running(j, "a", q)
    j.at(5)
    q.edit(default={"cpu": (1, 1, None)})
    found = only(j.findings(until=15))
    assert (found.cause, found.peak) == ("quota-edited", {"cpu": 500})
    assert found.text.startswith("ClusterQueue cq used")


def test_what_was_admitted_beyond_the_quota_and_runs_is_part_of_that(j: Journal) -> None:
    q = j.at(0).queue()
    running(j, "a", q, pods={"head": 2})
    running(j, "b", q, pods={"head": 2})
    admitted, used = sorted(j.findings(until=5), key=lambda f: f.klass)
    assert (admitted.klass, admitted.part_of) == ("contract", "")
    assert (used.cause, used.klass, used.peak, used.part_of) == ("over-admitted", "hazard", {"cpu": 1000}, admitted.id)


def test_s4_use_by_survivors_is_written_into_the_findings_that_explain_it(j: Journal) -> None:
    q = j.at(-10).queue()
    a, pods = running(j, "a", q)
    b = j.job("b", q)
    j.at(0)
    a.state("Complete", "SUCCEEDED")
    a.workload.finish()
    b.workload.admit()
    b.start()
    j.at(3)
    for pod in pods:
        pod.gone()
    found = by_rule(j.findings(until=10))
    assert set(found) == {"no-overlap", "no-survivors"}
    assert found["no-overlap"].over_quota == found["no-survivors"].over_quota == {"cpu": 2000}
    assert "up to 2 CPU beyond the quota of ClusterQueue cq" in found["no-overlap"].text
    assert found["no-survivors"].peak == {"cpu": 2500}


def test_survivors_on_free_quota_exceed_nothing(j: Journal) -> None:
    q = j.at(-10).queue()
    a, _ = running(j, "a", q)
    a.workload.finish()
    assert only(j.findings(until=10)).over_quota == {}


def test_pods_beyond_their_charge_explain_use_beyond_the_quota(j: Journal) -> None:
    q = j.at(0).queue()
    a = j.job("a", q)
    a.workload.admit()
    a.pod("head", cpu=3.25)
    found = only(j.findings(until=10))
    assert (found.rule, found.cause, found.peak) == ("pods-covered", "under-count", {"cpu": 2250})
    assert found.over_quota == {"cpu": 250}


def test_survivors_beside_an_edited_quota_are_told_apart_from_the_edit(j: Journal) -> None:
    q = j.at(-10).queue(cpu=5)
    a, pods = running(j, "a", q)
    running(j, "b", q)
    j.at(0)
    a.state("Complete", "SUCCEEDED")
    a.workload.finish()
    q.edit(default={"cpu": 2})
    j.at(3)
    for pod in pods:
        pod.gone()
    found = by_rule(j.findings(until=10))
    assert found["quota-respected"].peak == {"cpu": 500}
    assert found["quota-respected"].seconds == (10.0, 10.0)
    assert found["no-survivors"].over_quota == {"cpu": 2500}


def test_pods_born_after_the_release_use_the_quota_that_their_job_had(j: Journal) -> None:
    q = j.at(0).queue(cpu=1)
    a = j.job("a", q, pods={"head": 1})
    b = j.job("b", q, pods={"head": 1})
    a.workload.admit()
    a.workload.release()
    b.workload.admit()
    b.start()
    a.pod("head")
    found = only(j.findings(until=3))
    assert (found.cause, found.cluster_queue, found.over_quota) == ("born-after-release", "cq", {"cpu": 1000})


def test_what_other_kinds_of_jobs_are_charged_stands_for_what_they_use(j: Journal) -> None:
    q = j.at(0).queue()
    other = j.job("other", q, pods={"main": 2}, labelled=False)
    other.workload.body["metadata"]["ownerReferences"] = [
        {"kind": "Job", "name": "batch", "uid": "job-uid", "controller": True}
    ]
    other.workload.admit()
    j.at(5)
    q.edit(default={"cpu": 1})
    j.at(8)
    other.workload.finish()
    found = only(j.findings(until=15))
    assert (found.cause, found.peak, found.seconds) == ("quota-edited", {"cpu": 1000}, (3.0, 3.0))


def folded(j: Journal) -> OverUse:
    books = Books()
    rule = OverUse(books, Thresholds(), PAIR)
    for record in j.records:
        assert isinstance(record, Event)
        books.identities.learn(record)
        for change in books.apply(record, Moment(record.rev, record.arrived)):
            rule.see(change)
    rule.advance(EPOCH + 10 * 10**9)
    return rule


def test_use_that_no_finding_explains_is_raised(j: Journal) -> None:
    q = j.at(0).queue()
    a, _ = running(j, "a", q)
    a.workload.finish()
    running(j, "b", q)
    found = only(folded(j).review([]))
    assert (found.cause, found.klass, found.peak, found.part_of) == ("unexplained", "hazard", {"cpu": 2000}, "")
    survivors = only([f for f in j.findings(until=10) if f.rule == "no-survivors"])
    explained, *more = folded(j).review([survivors])
    assert (explained.over_quota, more) == ({"cpu": 2000}, [])


def test_use_beyond_the_quota_that_nobody_edited_and_that_was_there_first_is_told_as_such(j: Journal) -> None:
    q = j.at(0).queue(cpu=1)
    running(j, "a", q)
    j.records = [
        Event(r.kind, "ADDED", r.rev, r.arrived, r.object, listed=True) for r in j.records if isinstance(r, Event)
    ]
    assert {f.cause for f in folded(j).review([])} == {"before-journal"}


def test_a_closed_scope_is_forgotten(j: Journal) -> None:
    q = j.at(0).queue()
    running(j, "a", q)
    q.edit(default={"cpu": 1})
    ledger = j.ledger(until=10)
    assert [f.cause for f in ledger.findings(SCOPE) if f.rule == "quota-respected"] == ["quota-edited"]
    ledger.forget(SCOPE)
    assert [f for f in ledger.unscoped([]) if f.rule == "quota-respected"] == []
