"""Simulated nodes: what they offer, and how their pods come up and go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

STOP_ANNOTATION = "pod-delete.stage.kwok.x-k8s.io/delay"
"""KWOK's own annotation: how long the pod's containers take to stop, such as "5s". Without it a pod goes at once."""

_SHIPPED_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    # Not pod/fast/pod-complete.yaml: it would end submitter pods at once, and when they end is for the test to say.
)

# Never beyond the pod's grace, as a kubelet would not wait longer either.
_DELAY = (
    f'(.metadata.annotations["{STOP_ANNOTATION}"] | rtrimstr("s") | tonumber) as $wanted'
    " | (.metadata.deletionGracePeriodSeconds // 0) as $grace"
    ' | (if $wanted < $grace then $wanted else $grace end) | tostring + "s"'
)


def stages(sources: Path) -> str:
    """The stages file: KWOK's own for nodes and starting pods, ours for pods that go."""
    shipped = [(sources / "kustomize" / "stage" / name).read_text() for name in _SHIPPED_STAGES]
    ours = [_delete_stage("pod-delete", "DoesNotExist", None), _delete_stage("pod-delete-slowly", "Exists", _DELAY)]
    return "\n---\n".join([*shipped, *(yaml.safe_dump(stage) for stage in ours)])


def _delete_stage(name: str, annotated: str, delay: str | None) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
        "selector": {
            "matchExpressions": [
                {"key": ".metadata.deletionTimestamp", "operator": "Exists"},
                {"key": f'.metadata.annotations["{STOP_ANNOTATION}"]', "operator": annotated},
            ]
        },
        "next": {"delete": True},
    }
    if delay is not None:
        spec["delay"] = {"durationMilliseconds": 0, "durationFrom": {"expressionFrom": delay}}
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}


def nodes(count: int = 2) -> list[dict[str, Any]]:
    """Nodes that are never full: a test that needs a full one makes its own."""
    offer = {"cpu": "10000", "memory": "100Ti", "pods": "10000", "nvidia.com/gpu": "1000"}
    return [node(f"raykueue-node-{number}", offer) for number in range(count)]


def node(name: str, offer: dict[str, str], labels: dict[str, str] | None = None) -> dict[str, Any]:
    """One simulated node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **(labels or {})},
        },
        "status": {"allocatable": offer, "capacity": offer},
    }
