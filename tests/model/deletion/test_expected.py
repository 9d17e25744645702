from __future__ import annotations

import pytest

from raykueue.model.deletion.expected import BUSY_SECONDS, FOLLOWING_SECONDS, KUBERAY_SECONDS, Due, Expected, Part

SHARP = KUBERAY_SECONDS + BUSY_SECONDS
EVERYTHING = frozenset(Part)


def about(ttl: int = 0, **goes: Due) -> Expected:
    return Expected("file@v1", parts=EVERYTHING, goes={Part[name.upper()]: due for name, due in goes.items()}, ttl=ttl)


def test_what_does_not_go_is_kept() -> None:
    assert about(head=Due(0)).kept == EVERYTHING - {Part.HEAD}
    assert about().kept == EVERYTHING


@pytest.mark.parametrize("seconds", [3.0, 4.5, 3.0 + SHARP])
def test_what_goes_between_its_ttl_and_kuberays_next_look_is_timely(seconds: float) -> None:
    assert about(cluster=Due(3)).untimely({Part.CLUSTER: seconds}) == []


@pytest.mark.parametrize("seconds", [2.99, 3.01 + SHARP])
def test_what_goes_too_early_or_too_late_is_told_with_its_time(seconds: float) -> None:
    (told,) = about(cluster=Due(3)).untimely({Part.CLUSTER: seconds})
    assert told.startswith(f"RayCluster went {seconds:.2f} s after status.endTime, expected 3 s to ")
    assert told.endswith("by KubeRay")


def test_what_follows_another_has_its_time_to_follow() -> None:
    late = SHARP + FOLLOWING_SECONDS
    assert about(head=Due(0, "the garbage collector")).untimely({Part.HEAD: late}) == []
    assert about(head=Due(0, "Kueue")).untimely({Part.HEAD: late}) == []
    assert about(cluster=Due(0, "the garbage collector")).untimely({Part.CLUSTER: late}) == []
    assert len(about(rayjob=Due(0)).untimely({Part.RAYJOB: late})) == 1


def test_stages_in_another_order_are_told_even_if_each_is_in_time() -> None:
    stages = about(workers=Due(0), cluster=Due(3))
    assert stages.untimely({Part.WORKERS: 1.0, Part.CLUSTER: 3.5}) == []
    (told,) = stages.untimely({Part.WORKERS: 4.0, Part.CLUSTER: 3.5})
    assert "workers went after RayCluster" in told


def test_the_garbage_collector_may_be_late_but_not_for_ever() -> None:
    stages = about(head=Due(3, "the garbage collector"), rayjob=Due(6))
    assert stages.untimely({Part.HEAD: 9.0, Part.RAYJOB: 6.5}) == []
    assert "head went after RayJob" in stages.untimely({Part.HEAD: 12.0, Part.RAYJOB: 6.5})[0]


def test_nobody_waits_for_what_nobody_could_take() -> None:
    gone = about(head=Due(0), workers=Due(0), cluster=Due(0))
    assert gone.watch == 0
    assert gone.patience == SHARP + FOLLOWING_SECONDS


def test_what_stays_is_watched_for_as_long_as_a_late_action_could_come() -> None:
    assert about().watch == SHARP
    assert about(ttl=3).watch == 3 + SHARP
    assert about(workers=Due(3)).watch == 3 + SHARP
