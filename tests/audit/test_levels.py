from __future__ import annotations

from raykueue.audit.levels import Level, Levels
from raykueue.audit.replay import steps
from raykueue.model.events import Header
from tests.audit.journals import EPOCH, PAIR, Job, Journal

CPU = ("cq", "default", "cpu")


def levels(j: Journal) -> Levels:
    kept = Levels()
    for step in steps([Header(EPOCH, pair=PAIR), *j.records]):
        for change in step.changes:
            kept.see(change)
    return kept


def admitted(j: Journal) -> Job:
    a = j.job("a", j.queue(cpu=3))
    a.workload.admit()
    return a


def test_each_key_has_nominal_booked_charged_and_demand() -> None:
    j = Journal()
    a = admitted(j)
    assert levels(j).at(CPU) == Level(3000, None, None, 2500, 0)
    a.queue.books(1, 2)
    a.start()
    assert levels(j).at(CPU) == Level(3000, 1000, 2000, 2500, 2500)


def test_a_charge_ends_with_its_hold_and_demand_with_its_pod() -> None:
    j = Journal()
    a = admitted(j)
    head = a.pod("head")
    a.workload.release()
    assert levels(j).at(CPU) == Level(3000, None, None, 0, 1000)
    assert levels(j).holds == {}
    head.gone()
    assert levels(j).at(CPU).demand == 0
    assert levels(j).pods == {}
    a.queue.gone()
    assert levels(j).keys() == []


def test_pods_that_have_ended_or_are_gated_ask_nothing_but_are_there() -> None:
    j = Journal()
    a = admitted(j)
    a.pod("head").end()
    a.pod("workers", gated=True)
    kept = levels(j)
    assert kept.at(CPU).demand == 0
    assert len(kept.pods) == 2


def test_what_is_asked_but_not_assigned_counts_under_the_flavor_of_its_group() -> None:
    j = Journal()
    q = j.queue(flavors={"default": {"cpu": 3, "memory": "1Gi"}})
    a = j.job("a", q)  # its pods are charged no memory
    a.workload.admit()
    a.pod("head", requests={"cpu": 1, "memory": "256Mi", "ephemeral-storage": "1Gi"})
    kept = levels(j)
    assert kept.at(("cq", "default", "memory")) == Level(1 << 30, None, None, 0, 1 << 28)
    assert kept.keys() == [CPU, ("cq", "default", "memory")], "what the queue does not cover is not there"


def test_flavors_of_a_queue_add_up() -> None:
    j = Journal()
    q = j.queue(flavors={"spot": {"cpu": 2}, "fixed": {"cpu": 1}})
    a = j.job("a", q)
    a.workload.admit(flavor={"head": "fixed", "workers": "spot", "submitter": "spot"})
    a.start()
    q.books({"spot": {"cpu": 1.5}, "fixed": {"cpu": 1}}, {"spot": {"cpu": 1.5}})
    assert levels(j).total("cq", "cpu") == Level(3000, 2500, 1500, 2500, 2500)
    assert levels(j).total("other", "cpu") == Level(None, None, None, 0, 0)
