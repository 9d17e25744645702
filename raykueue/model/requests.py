"""What a pod asks for: its effective requests, by the rule of Kubernetes 1.34, and whether it asks at all.

Source: k8s.io/component-helpers resource/helpers.go:144-275@v0.34.4, which the scheduler uses
(k8s.io/kubernetes pkg/scheduler/framework/types.go:700-712@v1.34.4). Read from the pod object: the API server has
already copied limits to missing requests and applied LimitRange and RuntimeClass there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from raykueue.model.events import Object
from raykueue.model.quantities import CPU, PODS, parse, round_up, whole

_Exact: TypeAlias = dict[str, Fraction]

_TERMINAL = frozenset({"Succeeded", "Failed"})


def live(pod: Object) -> bool:
    """The pod exists and has not ended. A terminating pod is live."""
    return (pod.get("status") or {}).get("phase") not in _TERMINAL


def gated(pod: Object) -> bool:
    """A scheduling gate keeps the pod from running: it uses nothing."""
    return bool((pod.get("spec") or {}).get("schedulingGates"))


def bound(pod: Object) -> bool:
    """The pod sits on a node, so it holds the node's resources."""
    return bool((pod.get("spec") or {}).get("nodeName"))


def terminating(pod: Object) -> bool:
    """Deletion was asked for; the pod may still run."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def grace_seconds(pod: Object) -> int:
    """How long the pod may take to end: of the deletion if there is one, else of its spec (default 30)."""
    given = pod["metadata"].get("deletionGracePeriodSeconds")
    if given is None:
        given = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return 30 if given is None else int(given)


def demand(pod: Object) -> dict[str, int]:
    """What the pod uses of quota now: nothing if it has ended or is gated, else its effective requests and one pod."""
    if not live(pod) or gated(pod):
        return {}
    return {**effective(pod), PODS: 1}


def effective(pod: Object) -> dict[str, int]:
    """Effective requests of a pod, in amounts, rounded up once.

    Shapes: `pod` is a v1 Pod as decoded JSON, status included. Raises ValueError if a quantity is malformed.
    """
    spec: Mapping[str, Any] = pod.get("spec") or {}
    plain = _plain(spec, pod.get("status") or {})
    if plain is not None:
        return plain
    states = _ContainerStates(pod.get("status") or {})
    running: _Exact = {}
    for container in spec.get("containers") or ():
        _add(running, states.requests(container, resizable=True))
    peak: _Exact = {}
    side: _Exact = {}
    for container in spec.get("initContainers") or ():
        restartable = container.get("restartPolicy") == "Always"
        asked = states.requests(container, resizable=restartable)
        if restartable:
            _add(running, asked)
            _add(side, asked)
            _raise(peak, side)
        else:
            moment = dict(side)
            _add(moment, asked)
            _raise(peak, moment)
    _raise(running, peak)
    for resource, quantity in ((spec.get("resources") or {}).get("requests") or {}).items():
        if resource in (CPU, "memory") or resource.startswith("hugepages-"):
            running[resource] = parse(quantity)
    _add(running, _exact(spec.get("overhead")))
    return {resource: round_up(resource, value) for resource, value in running.items()}


def _plain(spec: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, int] | None:
    """The sum over the containers of a pod that has nothing else, in whole millicores, bytes, pieces; else None.

    Almost every pod is like that, and integers cost a tenth of fractions.
    """
    if spec.get("initContainers") or spec.get("resources") or spec.get("overhead"):
        return None
    for one in status.get("containerStatuses") or ():
        if one.get("resources"):
            return None
    total: dict[str, int] = {}
    for container in spec.get("containers") or ():
        for resource, quantity in ((container.get("resources") or {}).get("requests") or {}).items():
            value = whole(resource, quantity)
            if value is None:
                return None
            total[resource] = total.get(resource, 0) + value
    return total


class _ContainerStates:
    """In-place resize: what the kubelet has given to a container may be more than its spec says."""

    def __init__(self, status: Mapping[str, Any]) -> None:
        listed: Iterable[Mapping[str, Any]] = [
            *(status.get("containerStatuses") or ()),
            *(status.get("initContainerStatuses") or ()),
        ]
        self._by_name = {one.get("name"): one for one in listed}
        self._infeasible = any(
            c.get("type") == "PodResizePending" and c.get("reason") == "Infeasible"
            for c in status.get("conditions") or ()
        )

    def requests(self, container: Mapping[str, Any], *, resizable: bool) -> _Exact:
        asked = _exact((container.get("resources") or {}).get("requests"))
        state = self._by_name.get(container.get("name"))
        actual = state.get("resources") if state and resizable else None
        if state is None or actual is None:
            return asked
        result = {} if self._infeasible else asked
        _raise(result, _exact(actual.get("requests")))
        _raise(result, _exact(state.get("allocatedResources")))
        return result


def _exact(quantities: Mapping[str, Any] | None) -> _Exact:
    return {resource: parse(quantity) for resource, quantity in (quantities or {}).items()}


def _add(total: _Exact, more: Mapping[str, Fraction]) -> None:
    for resource, value in more.items():
        total[resource] = total.get(resource, Fraction(0)) + value


def _raise(total: _Exact, other: Mapping[str, Fraction]) -> None:
    for resource, value in other.items():
        total[resource] = max(total.get(resource, value), value)
