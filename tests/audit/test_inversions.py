from __future__ import annotations

import pytest

from tests.audit.scenes import Scene, cohort


@pytest.fixture(params=["v1beta1", "v1beta2"])
def scene(request: pytest.FixtureRequest) -> Scene:
    return Scene(request.param)


def inverted(scene: Scene, cycle: float = 2.0) -> list[tuple[str, float]]:
    found = [d for d in scene.decisions(cycle) if d.kind == "inversion"]
    return [(str(d.preemptor.name) if d.preemptor else "", (d.end - d.begin) / 1e3) for d in found]


def test_a_priority_that_is_inverted_for_longer_than_a_cycle_is_told(scene: Scene) -> None:
    q = scene.queue(cpu=3)
    scene.holds("low", q, 3, 1)
    scene.waits("high", q, 3, 9)
    scene.tick(2)
    scene.preempt("high", "low")
    assert inverted(scene) == []
    assert inverted(scene, 1.999) == [("rayjob-high-1", 2.0)]
    (found,) = [d for d in scene.decisions(1) if d.kind == "inversion"]
    assert found.text == (
        "Workload team-ns/rayjob-high-1 waited 2000 ms in ClusterQueue q while lower ones held what it could take: "
        "Workload team-ns/rayjob-low-1"
    )


def test_one_that_nothing_was_done_for_is_told_until_the_end(scene: Scene) -> None:
    q = scene.queue(cpu=3)
    scene.holds("low", q, 3, 1)
    scene.waits("high", q, 3, 9)
    scene.tick(10)
    scene.j.marker("the end")
    assert inverted(scene) == [("rayjob-high-1", 10.0)]


@pytest.mark.parametrize(
    "what", ["policy", "equal", "room", "making-room", "not-enough", "stopped", "inactive", "down"]
)
def test_it_is_no_inversion_if_kueue_may_not_or_need_not_preempt(what: str) -> None:
    scene = Scene()
    spec = {"stopPolicy": "Hold"} if what == "stopped" else {}
    q = scene.queue(cpu=9 if what == "room" else 3, within="Never" if what == "policy" else "LowerPriority", spec=spec)
    scene.holds("low", q, 3, 9 if what == "equal" else 1)
    if what == "making-room":
        scene.jobs["low"].workload.evict()
    if what == "down":
        scene.j.marker("kueue-down")
    scene.waits("high", q, 4 if what == "not-enough" else 3, 9)
    if what == "inactive":
        scene.jobs["high"].workload.off()
    scene.tick(30)
    scene.j.marker("the end")
    assert inverted(scene) == []


def test_reclaim_that_is_not_done_is_an_inversion_too(scene: Scene) -> None:
    owner, borrower = cohort(scene)
    scene.holds("borrowed", borrower, 6, 1)
    scene.waits("back", owner, 4, 5)
    scene.tick(10)
    scene.j.marker("the end")
    assert inverted(scene) == [("rayjob-back-1", 10.0)]


def test_a_lower_one_that_is_given_quota_before_a_higher_one_overtakes_it(scene: Scene) -> None:
    q = scene.queue(cpu=6)
    scene.waits("high", q, 3, 9)
    scene.waits("low", q, 3, 1)
    scene.tick(4)
    scene.admit("low")
    (found,) = scene.decisions()
    assert (found.kind, found.verdict, found.end - found.begin) == ("overtaking", "wrong", 5000.0)
    assert found.text == (
        "Workload team-ns/rayjob-high-1 waited 5000 ms in ClusterQueue q where there was room: "
        "Workload team-ns/rayjob-low-1 was given quota before it"
    )


@pytest.mark.parametrize("what", ["no-room", "just-come", "equal", "taint", "selector", "other-queue", "selected"])
def test_it_is_not_overtaken_if_quota_is_not_all_that_keeps_it_out(what: str) -> None:
    scene = Scene()
    flavor = scene.j.flavor("default")
    if what == "taint":
        flavor.body["spec"]["nodeTaints"] = [{"key": "spot", "effect": "NoSchedule"}]
        scene.j.emit("ResourceFlavor", flavor.body)
    q = scene.queue(cpu=6, spec={"namespaceSelector": {"matchLabels": {"a": "b"}} if what == "selected" else {}})
    high = scene.waits("high", scene.queue("other") if what == "other-queue" else q, 7 if what == "no-room" else 3, 9)
    if what == "selector":
        template = high.workload.body["spec"]["podSets"][0]["template"]["spec"]
        template["nodeSelector"] = {"zone": "x"}
        high.workload.write()
    scene.waits("low", q, 3, 9 if what == "equal" else 1)
    scene.tick(0.5 if what == "just-come" else 4)
    scene.admit("low")
    assert scene.decisions() == []
