from __future__ import annotations

from typing import Any

import pytest

from tests.audit.scenes import Scene, cohort


@pytest.fixture(params=["v1beta1", "v1beta2"])
def scene(request: pytest.FixtureRequest) -> Scene:
    return Scene(request.param)


def test_the_lowest_that_is_enough_is_right(scene: Scene) -> None:
    q = scene.queue(cpu=6)
    scene.holds("low", q, 3, 1)
    scene.holds("middle", q, 3, 5)
    scene.waits("high", q, 3, 9)
    scene.tick()
    scene.preempt("high", "low")
    found = scene.only()
    assert (found.verdict, found.reasons, found.remarks) == ("right", (), ())
    assert found.text == (
        "Workload team-ns/rayjob-high-1 preempted Workload team-ns/rayjob-low-1 in ClusterQueue q: "
        "legal, and no smaller or lower set was enough"
    )


def test_a_higher_one_than_necessary_is_wrong(scene: Scene) -> None:
    q = scene.queue(cpu=6)
    scene.holds("low", q, 3, 1)
    scene.holds("middle", q, 3, 5)
    scene.waits("high", q, 3, 9)
    scene.tick()
    scene.preempt("high", "middle")
    found = scene.only()
    assert found.verdict == "wrong"
    assert "rayjob-middle-1 (priority 5) was preempted although a lower set was enough" in found.text
    assert "with Workload team-ns/rayjob-low-1 (priority 1) instead" in found.text


def test_one_too_many_is_wrong(scene: Scene) -> None:
    q = scene.queue(cpu=6)
    scene.holds("low", q, 3, 1)
    scene.holds("middle", q, 3, 5)
    scene.waits("high", q, 3, 9)
    scene.tick()
    scene.preempt("high", "low", "middle")
    found = scene.only()
    assert found.verdict == "wrong"
    assert "rayjob-middle-1 (priority 5) was preempted for nothing: the others were enough" in found.text


def test_too_few_is_wrong(scene: Scene) -> None:
    q = scene.queue(cpu=6)
    scene.holds("low", q, 3, 1)
    scene.holds("middle", q, 3, 5)
    scene.waits("high", q, 6, 9)
    scene.tick()
    scene.preempt("high", "low")
    assert scene.only().reasons == ("the victims' quota together is not enough for it",)


def test_preempting_although_there_is_room_is_wrong(scene: Scene) -> None:
    q = scene.queue(cpu=9)
    scene.holds("low", q, 3, 1)
    scene.waits("high", q, 3, 9)
    scene.tick(5)
    scene.preempt("high", "low")
    assert scene.only().reasons == ("nothing had to be preempted: there was room",)


def test_of_equals_the_younger_reservation_goes_first_and_of_the_same_second_either(scene: Scene) -> None:
    q = scene.queue(cpu=6)
    scene.holds("old", q, 3, 1)
    scene.holds("young", q, 3, 1)
    scene.waits("high", q, 3, 9)
    scene.tick()
    scene.preempt("high", "old")
    assert "although a lower set was enough" in scene.only().text
    same = Scene()
    q = same.queue(cpu=6)
    for name in "ab":
        same.waits(name, q, 3, 1)
    same.tick()
    for name in "ab":
        same.admit(name)
    same.waits("high", q, 3, 9)
    same.tick()
    same.preempt("high", "a")
    assert same.only().verdict == "right"


def test_fewer_but_higher_victims_are_a_remark_not_a_fault(scene: Scene) -> None:
    q = scene.queue(cpu=7)
    scene.holds("a", q, 2, 1)
    scene.holds("b", q, 2, 2)
    scene.holds("c", q, 3, 3)
    scene.waits("high", q, 3, 9)
    scene.tick()
    scene.preempt("high", "a", "b")
    found = scene.only()
    assert found.verdict == "right"
    assert found.remarks == (
        "fewer would have been enough, but of higher rank: Workload team-ns/rayjob-c-1 (priority 3)",
    )


@pytest.mark.parametrize(
    ("within", "priority", "older", "verdict"),
    [
        ("Never", 1, False, "wrong"),
        ("LowerPriority", 8, False, "right"),
        ("LowerPriority", 9, True, "wrong"),
        ("LowerOrNewerEqualPriority", 8, False, "right"),
        ("LowerOrNewerEqualPriority", 9, True, "right"),  # the one that waits was there before the victim
        ("LowerOrNewerEqualPriority", 9, False, "wrong"),
        ("LowerOrNewerEqualPriority", 10, True, "wrong"),
    ],
)
def test_whom_each_policy_allows(within: str, priority: int, older: bool, verdict: str) -> None:
    scene = Scene()
    q = scene.queue(cpu=3, within=within)
    if older:
        scene.waits("high", q, 3, 9)
    scene.holds("victim", q, 3, priority)
    if not older:
        scene.waits("high", q, 3, 9)
    scene.tick(3)
    scene.preempt("high", "victim")
    found = scene.only()
    assert found.verdict == verdict
    if verdict == "wrong":
        assert "withinClusterQueue" in found.text


def test_a_victim_that_uses_nothing_of_what_is_lacking_is_wrong(scene: Scene) -> None:
    q = scene.queue(flavors={"default": {"cpu": 3}, "other": {"cpu": 3}})
    scene.holds("low", q, 3, 1)
    scene.waits("elsewhere", q, 3, 1)
    scene.tick()
    scene.jobs["elsewhere"].workload.admit(flavor="other")
    scene.waits("high", q, 3, 9)
    scene.tick(3)
    scene.preempt("high", "elsewhere")
    scene.tick()
    scene.release("elsewhere")
    scene.admit("high")
    assert "uses nothing of what was lacking" in scene.only().text


def test_those_already_evicted_count_first_and_what_they_leave_is_enough(scene: Scene) -> None:
    q = scene.queue(cpu=6)
    scene.holds("low", q, 3, 1)
    scene.holds("middle", q, 3, 5)
    scene.waits("first", q, 3, 8)
    scene.tick()
    scene.preempt("first", "low")
    scene.waits("high", q, 6, 9)
    scene.tick()
    scene.preempt("high", "middle")
    assert [d.verdict for d in scene.preemptions()] == ["right", "right"]


def test_two_decisions_for_the_same_one_are_told_apart(scene: Scene) -> None:
    q = scene.queue(cpu=6)
    scene.holds("low", q, 3, 1)
    scene.holds("middle", q, 3, 5)
    scene.waits("high", q, 3, 9)
    scene.tick()
    scene.preempt("high", "low")
    scene.tick(5)
    scene.release("low")
    scene.holds("low2", q, 3, 2)
    scene.tick(5)
    scene.preempt("high", "low2")
    assert [len(d.victims) for d in scene.preemptions()] == [1, 1]
    assert [d.verdict for d in scene.preemptions()] == ["right", "right"]


def test_quota_that_others_borrow_is_reclaimed(scene: Scene) -> None:
    owner, borrower = cohort(scene)
    scene.holds("own", borrower, 4, 9)
    scene.holds("borrowed", borrower, 3, 9)
    scene.waits("back", owner, 4, 1)
    scene.tick()
    scene.preempt("back", "borrowed", reason="InCohortReclamation")
    assert scene.only().verdict == "right"


def test_reclaim_never_and_from_who_does_not_borrow_are_wrong(scene: Scene) -> None:
    owner, borrower = cohort(scene, "LowerPriority")
    scene.holds("own", borrower, 4, 0)
    scene.holds("mine", owner, 4, 0)
    scene.waits("back", owner, 4, 1)
    scene.tick()
    scene.preempt("back", "own", reason="InCohortReclamation")
    assert "which used no more than its own quota" in scene.only().text
    never = Scene()
    owner, borrower = cohort(never, "Never")
    never.holds("borrowed", borrower, 7, 0)
    never.waits("back", owner, 4, 1)
    never.tick()
    never.preempt("back", "borrowed")
    assert "although reclaimWithinCohort is Never" in never.only().text


def test_more_than_its_own_quota_is_not_reclaimed(scene: Scene) -> None:
    owner, borrower = cohort(scene)
    scene.holds("borrowed", borrower, 7, 0)
    scene.waits("much", owner, 6, 1)
    scene.tick()
    scene.preempt("much", "borrowed", reason="InCohortReclamation")
    assert scene.only().verdict == "wrong"


def test_others_are_preempted_before_ones_own(scene: Scene) -> None:
    owner, borrower = cohort(scene)
    scene.holds("mine", owner, 2, 0)
    scene.holds("borrowed", borrower, 6, 5)
    scene.waits("back", owner, 2, 9)
    scene.tick()
    scene.preempt("back", "mine")
    found = scene.only()
    assert found.verdict == "wrong"
    assert "although a lower set was enough" in found.text
    other = Scene()
    owner, borrower = cohort(other)
    other.holds("mine", owner, 2, 0)
    other.holds("borrowed", borrower, 6, 5)
    other.waits("back", owner, 2, 9)
    other.tick()
    other.preempt("back", "borrowed", reason="InCohortReclamation")
    assert other.only().verdict == "right"


def test_a_victim_outside_of_the_cohort_is_wrong(scene: Scene) -> None:
    q, other = scene.queue(cpu=3), scene.queue("other", 3)
    scene.holds("mine", q, 3, 0)
    scene.holds("foreign", other, 3, 0)
    scene.waits("high", q, 3, 9)
    scene.tick()
    scene.preempt("high", "foreign")
    assert "held no quota in its cohort" in scene.only().text


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"rules": {"borrowWithinCohort": {"policy": "LowerPriority"}}}, "borrowWithinCohort is set"),
        ({"spec": {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}}, "fair sharing"),
        ({"cohort": "nested"}, "its cohort is one of a hierarchy"),
    ],
)
def test_what_the_model_does_not_know_is_said(settings: dict[str, Any], why: str) -> None:
    scene = Scene()
    scene.j.cohort("nested", parent="root")
    q = scene.queue(cpu=3, **settings)
    scene.holds("low", q, 3, 1)
    scene.waits("high", q, 3, 9)
    scene.tick()
    scene.preempt("high", "low")
    found = scene.only()
    assert found.verdict == "undecided"
    assert why in found.text


def test_fair_sharing_topologies_boosts_and_strangers_are_not_decided() -> None:
    scene = Scene()
    q = scene.queue(cpu=3)
    scene.holds("low", q, 3, 1)
    scene.waits("high", q, 3, 9)
    scene.preempt("high", "low", reason="InCohortFairSharing")
    assert "chosen by fair sharing" in scene.only().text
    scene.tick(5)
    scene.preempt("somebody", "low")
    assert [d.preemptor for d in scene.preemptions()] == [scene.preemptions()[0].preemptor, None]
    assert "somebody who is not in the journal" in scene.preemptions()[1].text
    boosted = Scene()
    q = boosted.queue(cpu=3)
    boosted.holds("low", q, 3, 1).workload.body["metadata"]["annotations"] = {"kueue.x-k8s.io/priority-boost": "5"}
    boosted.waits("high", q, 3, 9)
    boosted.preempt("high", "low")
    assert "has a priority boost" in boosted.only().text
    racks = Scene()
    flavor = racks.j.flavor("default")
    flavor.body["spec"]["topologyName"] = "racks"
    racks.j.emit("ResourceFlavor", flavor.body)
    q = racks.queue(cpu=3)
    racks.holds("low", q, 3, 1)
    racks.waits("high", q, 3, 9)
    racks.preempt("high", "low")
    assert "its flavor has a topology" in racks.only().text


def test_what_a_workload_with_several_flavors_asks_is_known_only_once_it_was_given_it(scene: Scene) -> None:
    q = scene.queue(flavors={"default": {"cpu": 3}, "other": {"cpu": 0}})
    scene.holds("low", q, 3, 1)
    scene.waits("high", q, 3, 9)
    scene.tick()
    scene.preempt("high", "low")
    assert "what it asked is not in the journal" in scene.only().text
    scene.tick()
    scene.release("low")
    scene.admit("high")
    assert scene.only().verdict == "right"


def test_a_scheduler_may_not_have_seen_what_changed_in_the_last_second() -> None:
    for pause, verdict in ((0.5, "right"), (1.5, "wrong")):
        scene = Scene()
        q = scene.queue(cpu=6)
        scene.holds("low", q, 3, 1)
        scene.holds("middle", q, 3, 5)
        scene.waits("high", q, 3, 9)
        scene.tick(3)
        scene.jobs["middle"].workload.finish()
        scene.tick(pause)
        scene.preempt("high", "low")
        assert scene.only().verdict == verdict


def test_a_scheduler_leads_what_it_has_assumed() -> None:
    for pause, verdict in ((0.5, "right"), (1.5, "wrong")):
        scene = Scene()
        q = scene.queue(cpu=6)
        scene.holds("low", q, 3, 1)
        scene.waits("middle", q, 3, 5)
        scene.waits("high", q, 3, 9)
        scene.tick(3)
        scene.preempt("high", "low")
        scene.tick(pause)
        scene.admit("middle")
        assert scene.only().verdict == verdict
