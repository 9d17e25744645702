from __future__ import annotations

import copy
from typing import Any

import pytest

from raykueue.clusters.embedded.kwok import STOP_ANNOTATION
from raykueue.errors import UsageError
from raykueue.run.manifests import load_one
from raykueue.run.stops import stop_slowly


def templates(rayjob: dict[str, Any]) -> list[dict[str, Any]]:
    cluster = rayjob["spec"]["rayClusterSpec"]
    return [group["template"] for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])]


def test_simulated_nodes_are_told_by_an_annotation() -> None:
    rayjob = load_one("rayjob.yaml", "RayJob")
    stop_slowly(rayjob, 2.5, "control-plane")
    assert [one["metadata"]["annotations"] for one in templates(rayjob)] == [{STOP_ANNOTATION: "2.5s"}] * 2


def test_a_kubelet_sleeps_in_a_pre_stop_hook() -> None:
    rayjob = load_one("rayjob.yaml", "RayJob")
    stop_slowly(rayjob, 5, "node")
    hooks = [container["lifecycle"] for one in templates(rayjob) for container in one["spec"]["containers"]]
    assert hooks == [{"preStop": {"sleep": {"seconds": 5}}}] * 2


@pytest.mark.parametrize(("seconds", "told"), [(31, "killed after 30 s, their grace period"), (2.5, "whole seconds")])
def test_what_a_kubelet_can_not_do_is_refused(seconds: float, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        stop_slowly(load_one("rayjob.yaml", "RayJob"), seconds, "node")


def test_the_grace_is_the_templates_own_if_it_has_one() -> None:
    rayjob = load_one("rayjob.yaml", "RayJob")
    for one in templates(rayjob):
        one["spec"]["terminationGracePeriodSeconds"] = 40
    before = copy.deepcopy(rayjob)
    stop_slowly(rayjob, 31, "control-plane")
    assert rayjob != before
