from __future__ import annotations

import dataclasses

import pytest

from raykueue.audit.books.changes import (
    Change,
    CohortChange,
    HoldChange,
    JobChange,
    ObjectChange,
    PodChange,
    QueueChange,
)
from raykueue.audit.ledger import Ledger
from raykueue.audit.order import Order
from raykueue.audit.replay import replay
from raykueue.audit.rules import RULES, Rule
from raykueue.audit.rules.books_match import BooksMatch
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Barrier, Event, Gap, Header, Marker, Moment
from raykueue.model.kinds import BY_NAME
from tests.audit.journals import EPOCH, NAMESPACE, PAIR, Journal

SCOPE = Scope(frozenset({NAMESPACE}), frozenset({"cq"}))


def event(rev: int, arrived: int, kind: str = "Pod", *, listed: bool = False) -> Event:
    body = {"metadata": {"name": f"o{rev}", "namespace": "ns", "uid": f"u{rev}"}}
    return Event(kind, "ADDED", rev, arrived, body, listed)


def test_events_are_handed_out_by_revision_with_the_earliest_time_that_proves_them() -> None:
    order = Order()
    for rev, arrived in ((3, 10), (1, 20), (2, 30), (5, 25)):
        assert order.add(event(rev, arrived))
    batch = order.take(Barrier(3, 40))
    assert [moment.rev for moment, _ in batch.items] == [1, 2, 3]
    assert [moment.t for moment, _ in batch.items] == [10, 10, 10]
    assert batch.now == 25  # what waits may have been written by then


def test_what_was_not_proven_waits_for_the_next_barrier() -> None:
    order = Order()
    order.add(event(5, 25))
    assert order.take(Barrier(3, 40)).items == ()
    batch = order.take(Barrier(6, 50))
    assert [(moment.rev, moment.t) for moment, _ in batch.items] == [(5, 25)]
    assert batch.now == 50


def test_an_event_older_than_what_was_judged_is_late() -> None:
    order = Order()
    order.take(Barrier(3, 40))
    assert not order.add(event(3, 41))
    assert order.add(event(4, 41))
    assert order.add(event(2, 41, listed=True))


def test_markers_go_where_their_time_puts_them() -> None:
    order = Order()
    order.add(event(1, 10))
    order.add(event(2, 30))
    order.mark(Marker("kueue-down", 20))
    order.mark(Marker("kueue-up", 99))
    batch = order.take(Barrier(2, 40))
    assert [type(item).__name__ for _, item in batch.items] == ["Event", "Marker", "Event"]
    assert batch.items[1][0] == Moment(1, 20)
    assert len(order.take(Barrier(3, 100)).items) == 1


def test_what_was_there_before_the_journal_is_folded_owners_first() -> None:
    order = Order()
    order.add(event(1, 10, "Pod", listed=True))
    order.add(event(7, 11, "RayJob", listed=True))
    order.add(event(5, 12, "Workload", listed=True))
    kinds = [item.kind for _, item in order.take(Barrier(9, 20)).items if isinstance(item, Event)]
    assert kinds == ["RayJob", "Workload", "Pod"]


def test_pods_of_the_first_list_are_paid_for_by_the_hold_that_was_open_then() -> None:
    j = Journal()
    q = j.queue()
    a = j.job("a", q)
    a.pod("head")  # its last write is older than that of its Workload
    a.workload.admit()
    j.records = [Event(e.kind, "ADDED", e.rev, e.arrived, e.object, True) for e in j.records if isinstance(e, Event)]
    assert j.ledger(until=10).findings(SCOPE) == []
    a.pod("head", "2")
    (found,) = j.ledger(until=10).findings(SCOPE)
    assert found.payer == f"{a.workload.uid}#1"


def feed(ledger: Ledger, j: Journal) -> None:
    for record in j.records:
        ledger.add(record)
    ledger.fold(Barrier(j.rev, j.now))


def test_late_events_and_gaps_are_problems_of_every_scope_that_existed() -> None:
    j = Journal()
    j.job("a", j.queue())
    ledger = Ledger(Thresholds(), PAIR)
    feed(ledger, j)
    assert ledger.problems(SCOPE) == []
    first = j.records[0]
    assert isinstance(first, Event)
    ledger.add(first)
    ledger.add(Gap("Pod", j.rev, j.rev + 5, j.now, "410 Gone"))
    assert [p.kind for p in ledger.problems(SCOPE)] == ["late", "gap"]
    assert "410 Gone" in ledger.problems(SCOPE)[-1].text


def test_a_gap_before_a_scope_began_does_not_concern_it() -> None:
    j = Journal()
    ledger = Ledger(Thresholds(), PAIR)
    ledger.add(Gap("Pod", 5, 50, EPOCH, "410 Gone"))
    j.job("a", j.queue())
    feed(ledger, j)
    assert ledger.problems(SCOPE) == []
    ledger.add(Gap("Pod", j.rev, j.rev + 1, EPOCH, "410 Gone"))
    assert [p.kind for p in ledger.problems(SCOPE)] == ["gap"]


def test_a_ray_pod_of_nobody_is_a_problem_of_its_scope_and_charged_to_no_one() -> None:
    j = Journal()
    a = j.job("a", j.queue())
    stranger = ({"metadata": {"name": "gone", "uid": "never-seen"}}, "RayCluster")
    a.pod("head", labels={"ray.io/node-type": "head", "ray.io/cluster": "gone"}, owner=stranger)
    ledger = j.ledger(until=1)
    assert [p.kind for p in ledger.problems(SCOPE)] == ["unattributed"]
    assert ledger.problems(Scope(frozenset({"other"}))) == []
    assert ledger.unscoped([]) == []


def test_a_pod_whose_cluster_was_never_seen_is_attributed_by_label() -> None:
    j = Journal()
    a = j.job("a", j.queue())
    a.body["status"]["rayClusterName"] = "a-raycluster"
    a.state("Running")
    stranger = ({"metadata": {"name": "a-raycluster", "uid": "never-seen"}}, "RayCluster")
    a.pod("head", labels={"ray.io/node-type": "head", "ray.io/cluster": "a-raycluster"}, owner=stranger)
    ledger = j.ledger(until=1)
    assert ledger.problems(SCOPE) == []
    assert [f.cause for f in ledger.findings(SCOPE)] == ["never-charged"]


def test_pods_that_have_nothing_to_do_with_ray_are_nobodys_business() -> None:
    j = Journal()
    j.emit("Pod", {"metadata": {"name": "x", "namespace": "kube-system", "uid": "x"}, "spec": {}}, "ADDED")
    assert j.ledger(until=1).problems(Scope(frozenset({"kube-system"}))) == []


def test_a_pod_older_than_its_cluster_shows_that_revisions_are_not_in_one_order() -> None:
    j = Journal()
    a = j.job("a", j.queue())
    cluster = a.start_cluster()
    j.records.pop()
    a.pod("head")
    a.cluster = cluster
    j.emit("RayCluster", cluster, "ADDED")
    assert [p.kind for p in j.ledger(until=1).problems(SCOPE)] == ["unordered"]


def broken(name: str, namespace: str, queue: str) -> Journal:
    j = Journal()
    a = j.job(name, j.queue(queue))
    a.pod("head")
    return j


def test_findings_go_to_the_scope_of_their_namespace_and_the_rest_is_unscoped() -> None:
    ledger = broken("a", NAMESPACE, "cq").ledger(until=1)
    assert len(ledger.findings(SCOPE)) == 1
    assert ledger.findings(Scope(frozenset({"other"}), frozenset({"cq"}))) == []
    assert ledger.unscoped([SCOPE]) == []
    assert len(ledger.unscoped([Scope(frozenset({"other"}))])) == 1


def test_what_was_forgotten_is_not_told_again_and_what_lives_on_is_still_judged() -> None:
    j = Journal()
    a = j.job("a", j.queue())
    a.workload.admit()
    pod = a.pod("head", cpu=2)
    ledger = j.ledger(until=1)
    assert len(ledger.findings(SCOPE)) == 1
    ledger.forget(SCOPE)
    assert ledger.findings(SCOPE) == []
    assert ledger.unscoped([]) == []
    second = a.pod("workers", cpu=3)
    ledger.add(j.records[-1])
    ledger.fold(Barrier(j.rev, EPOCH + 2 * 10**9))
    assert [f.cause for f in ledger.unscoped([])] == ["under-count"]
    for one in (pod, second):
        one.gone()
        ledger.add(j.records[-1])
    for kind, body in (("RayCluster", a.cluster), ("Workload", a.workload.body), ("RayJob", a.body)):
        assert body is not None
        ledger.add(j.emit(kind, body, "DELETED"))
    ledger.fold(Barrier(j.rev, EPOCH + 3 * 10**9))
    ledger.forget(SCOPE)
    books = ledger._books
    assert not books.objects.keys() - {"cq-0001"}
    assert books.job(a.body["metadata"]["uid"]) is None
    assert books.identities.get(a.body["metadata"]["uid"]) is None
    assert books.hold(f"{a.workload.uid}#1") is None


def test_circumstances_are_the_grace_ttl_and_charge_of_the_payers_job() -> None:
    j = Journal()
    a = j.job("a", j.queue(), ttlSecondsAfterFinished=20)
    a.workload.admit()
    a.pod("head", "1", grace=7)
    a.pod("head", "2", grace=3)
    ledger = j.ledger(until=1)
    (found,) = ledger.findings(SCOPE)
    at = ledger.circumstances([found])[found.id]
    assert (at.grace, at.ttl, at.charge) == (7, 20.0, {"cpu": 2500})


def test_a_replay_judges_by_the_headers_thresholds() -> None:
    j = Journal()
    q = j.at(0).queue()
    q.books(0, 0)
    j.job("a", q).workload.admit()
    j.at(20).marker("the end")
    strict = [Header(EPOCH, pair=PAIR, settings={"settle": 1.0}), *j.records]
    assert [f.seconds for f in replay(strict).findings(SCOPE) if f.rule == "books-match"] == [(19.0, 19.0)]
    assert "books-match" not in {f.rule for f in replay(strict, Thresholds(persist=60)).findings(SCOPE)}
    with pytest.raises(ValueError, match="begins with a header"):
        replay(j.records)


def test_negative_thresholds_are_refused() -> None:
    with pytest.raises(ValueError, match="none below 0: settle"):
        Thresholds.from_settings({"settle": -1})


@pytest.mark.parametrize("finished", [False, True], ids=["never-held", "finished-before"])
def test_nobody_judges_who_paid_for_a_pod_that_was_there_before_the_journal(finished: bool) -> None:
    j = Journal()
    a = j.at(0).job("a", j.queue())
    if finished:
        a.workload.admit()
        a.workload.finish()
    a.pod("head")
    ledger = Ledger(Thresholds(), PAIR)
    for record in j.arrivals():
        ledger.add(dataclasses.replace(record, listed=True, type="ADDED") if isinstance(record, Event) else record)
    ledger.fold(Barrier(10_000, EPOCH + 60 * 10**9))
    found = [one for one in ledger.unscoped([]) if one.rule in ("pods-covered", "no-survivors")]
    assert found == []


def test_a_rule_is_told_of_what_it_sees_and_of_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, list[str]] = {"some": [], "all": []}

    class Some(BooksMatch):
        sees = frozenset({HoldChange, "RayJob"})

        def see(self, change: Change) -> None:
            told["some"].append(change.ref.kind if isinstance(change, ObjectChange) else type(change).__name__)

    class All(BooksMatch):
        sees = None

        def see(self, change: Change) -> None:
            told["all"].append(type(change).__name__)

    monkeypatch.setattr("raykueue.audit.ledger.RULES", (Some, All))
    j = Journal()
    a = j.job("a", j.queue())
    a.workload.admit()
    a.pod("head")
    j.ledger(until=1)
    assert told["some"] == ["RayJob", "HoldChange"]
    assert sorted(set(told["all"])) == ["HoldChange", "JobChange", "ObjectChange", "PodChange", "QueueChange"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_says_what_it_sees_in_words_that_exist(rule: type[Rule]) -> None:
    assert rule.sees is not None
    types = {HoldChange, PodChange, JobChange, QueueChange, CohortChange, ObjectChange}
    kinds = {*BY_NAME, "RayService"}
    assert rule.sees <= types | kinds
