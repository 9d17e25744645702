from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykueue.model import requests


def container(name: str, cpu: int, *, side: bool = False) -> dict[str, Any]:
    body: dict[str, Any] = {"name": name, "resources": {"requests": {"cpu": f"{cpu}m"}}}
    return {**body, "restartPolicy": "Always"} if side else body


def pod(containers: list[int], inits: list[dict[str, Any]] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {
            "containers": [container(f"c{i}", cpu) for i, cpu in enumerate(containers)],
            "initContainers": inits or [],
            **spec,
        },
    }


PLAIN, SIDE = False, True


@pytest.mark.parametrize(
    ("containers", "inits", "cpu"),
    [
        ([100], [(200, PLAIN)], 200),
        ([500], [(800, PLAIN), (300, SIDE)], 800),
        ([500], [(300, SIDE), (800, PLAIN)], 1100),
        ([500], [(300, SIDE), (300, SIDE), (100, PLAIN)], 1100),
        ([100, 200], [], 300),
        ([], [(50, PLAIN), (70, PLAIN)], 70),
    ],
)
def test_init_containers_count_in_their_order(containers: list[int], inits: list[tuple[int, bool]], cpu: int) -> None:
    body = pod(containers, [container(f"i{n}", value, side=side) for n, (value, side) in enumerate(inits)])
    assert requests.effective(body) == {"cpu": cpu}


def test_pod_level_requests_replace_the_sum_up_and_down() -> None:
    assert requests.effective(pod([1000], resources={"requests": {"cpu": "300m"}})) == {"cpu": 300}
    over = pod([1000], resources={"requests": {"cpu": "2"}}, overhead={"cpu": "250m"})
    assert requests.effective(over) == {"cpu": 2250}


def test_pod_level_requests_of_other_resources_are_not_honoured() -> None:
    assert requests.effective(pod([1000], resources={"requests": {"nvidia.com/gpu": "1"}})) == {"cpu": 1000}


def resized(spec: str, actual: str, allocated: str, **status: Any) -> dict[str, Any]:
    state = {"name": "c", "resources": {"requests": {"cpu": actual}}, "allocatedResources": {"cpu": allocated}}
    return {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": spec}}}]},
        "status": {"containerStatuses": [state], **status},
    }


def test_a_resized_container_asks_the_most_of_wanted_and_given() -> None:
    assert requests.effective(resized("1", "2", "1")) == {"cpu": 2000}
    assert requests.effective(resized("3", "2", "1")) == {"cpu": 3000}
    assert requests.effective(resized("1", "1", "2")) == {"cpu": 2000}


def test_an_infeasible_resize_does_not_ask_what_it_cannot_get() -> None:
    pending = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    assert requests.effective(resized("9", "2", "1", conditions=pending)) == {"cpu": 2000}
    deferred = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
    assert requests.effective(resized("9", "2", "1", conditions=deferred)) == {"cpu": 9000}


def test_an_ordinary_init_container_is_never_resized() -> None:
    body = pod([100], [container("i", 200)])
    body["status"] = {"initContainerStatuses": [{"name": "i", "resources": {"requests": {"cpu": "5"}}}]}
    assert requests.effective(body) == {"cpu": 200}


def test_amounts_are_rounded_up_once_per_pod() -> None:
    body = pod([])
    body["spec"]["containers"] = [{"name": n, "resources": {"requests": {"cpu": "100500u"}}} for n in "ab"]
    assert requests.effective(body) == {"cpu": 201}


def test_an_ended_or_gated_pod_uses_nothing_and_a_terminating_one_uses_all() -> None:
    body = pod([100])
    assert requests.demand(body) == {"cpu": 100, "pods": 1}
    for phase in ("Succeeded", "Failed"):
        assert requests.demand({**body, "status": {"phase": phase}}) == {}
    assert requests.demand(pod([100], schedulingGates=[{"name": "kueue.x-k8s.io/elastic-job"}])) == {}
    leaving = {**body, "metadata": {**body["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert requests.demand(leaving) == {"cpu": 100, "pods": 1}
    assert requests.terminating(leaving)
    assert not requests.terminating(body)


def test_grace_comes_from_the_deletion_then_the_spec_then_the_default() -> None:
    body = pod([100])
    assert requests.grace_seconds(body) == 30
    body["spec"]["terminationGracePeriodSeconds"] = 0
    assert requests.grace_seconds(body) == 0
    body["metadata"]["deletionGracePeriodSeconds"] = 7
    assert requests.grace_seconds(body) == 7


def test_only_a_pod_with_a_node_is_bound() -> None:
    assert requests.bound(pod([1], nodeName="n1"))
    assert not requests.bound(pod([1]))


quantities = st.one_of(
    st.integers(0, 5000).map(lambda n: f"{n}m"),
    st.integers(0, 9).map(str),
    st.sampled_from(["0.1", "1e-3", "100u", "1.5", "2500000n", "64Mi", "1.5Gi", "7.3", "1G"]),
)
asks = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), quantities)


@given(st.lists(asks, max_size=4))
def test_a_pod_with_containers_only_asks_the_same_as_by_the_whole_rule(containers: list[dict[str, str]]) -> None:
    body = pod([])
    body["spec"]["containers"] = [{"name": f"c{n}", "resources": {"requests": r}} for n, r in enumerate(containers)]
    plain = requests.effective(body)
    body["spec"]["initContainers"] = [{"name": "asks-nothing"}]
    assert plain == requests.effective(body)


inits = st.lists(st.tuples(st.integers(0, 500), st.booleans()), max_size=5)


@given(st.lists(st.integers(0, 500), max_size=4), inits)
def test_a_pod_asks_what_its_worst_moment_needs(containers: list[int], steps: list[tuple[int, bool]]) -> None:
    body = pod(containers, [container(f"i{n}", value, side=side) for n, (value, side) in enumerate(steps)])
    running = sum(containers) + sum(value for value, side in steps if side)
    moments = [running]
    for n, (value, _) in enumerate(steps):
        moments.append(value + sum(v for v, side in steps[:n] if side))
    assert requests.effective(body).get("cpu", 0) == max(moments)


@given(st.lists(st.integers(0, 500), min_size=1, max_size=4), inits, st.integers(0, 500))
def test_one_more_container_never_makes_a_pod_ask_less(
    containers: list[int], steps: list[tuple[int, bool]], more: int
) -> None:
    listed = [container(f"i{n}", value, side=side) for n, (value, side) in enumerate(steps)]
    before = requests.effective(pod(containers, listed)).get("cpu", 0)
    after = requests.effective(pod([*containers, more], listed)).get("cpu", 0)
    assert before <= after <= before + more
