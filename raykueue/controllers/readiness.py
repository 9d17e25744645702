"""Proof that both controllers work, before any test relies on them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from raykueue.errors import ClusterError
from raykueue.kube.client import Api, ApiError

WEBHOOK_SECONDS = 30.0
PROBE_SECONDS = 30.0
"""Both measured at under 2 s on an idle machine; a controller that needs this long is broken, not slow."""
POLL_SECONDS = 0.03

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def prove_webhooks(api: Api, logs: Callable[[str], str], namespace: str = "default") -> None:
    """A RayJob with a queue name, created as a dry run, comes back suspended: Kueue's webhook is called and works.

    Raises:
        ClusterError: it does not, with the API server's last answer and the end of Kueue's own log.
    """
    deadline = time.monotonic() + WEBHOOK_SECONDS
    seen = ""
    while True:
        try:
            stored = api.create(_jobs(namespace), _probe("raykueue-probe"), dryRun="All")
            if stored["spec"].get("suspend"):
                return
            seen = "it was accepted, but not suspended"
        except ClusterError as error:
            seen = str(error)
        if time.monotonic() > deadline:
            raise ClusterError(
                f"a queued RayJob is not taken by Kueue's webhook after {WEBHOOK_SECONDS:.0f} s: {seen}\n"
                f"the end of Kueue's log:\n{logs('kueue')}"
            )
        time.sleep(POLL_SECONDS)


def prove_controllers(api: Api, logs: Callable[[str], str], namespace: str = "default") -> None:
    """One real RayJob is seen by both: Kueue makes a Workload for it, KubeRay writes its status; it is deleted again.

    Raises:
        ClusterError: one of them does nothing, with the end of its log.
    """
    name = f"raykueue-probe-{uuid.uuid4().hex[:6]}"
    path = f"{_jobs(namespace)}/{name}"
    uid = api.create(_jobs(namespace), _probe(name))["metadata"]["uid"]
    deadline = time.monotonic() + PROBE_SECONDS
    try:
        while True:
            by_kuberay = bool(api.get(path).get("status", {}).get("jobDeploymentStatus"))
            by_kueue = any(_owned_by(workload, uid) for workload in _workloads(api, namespace))
            if by_kuberay and by_kueue:
                return
            if time.monotonic() > deadline:
                idle = "kueue" if not by_kueue else "kuberay"
                raise ClusterError(
                    f"{idle} did nothing about a queued RayJob within {PROBE_SECONDS:.0f} s; the end of its log:\n"
                    f"{logs(idle)}"
                )
            time.sleep(POLL_SECONDS)
    finally:
        api.delete(path)


def _workloads(api: Api, namespace: str) -> list[dict[str, Any]]:
    for version in ("v1beta2", "v1beta1"):
        try:
            path = f"/apis/kueue.x-k8s.io/{version}/namespaces/{namespace}/workloads"
            items: list[dict[str, Any]] = api.get(path)["items"]
        except ApiError as error:
            if error.code != 404:
                raise
            continue
        return items
    return []


def _owned_by(workload: dict[str, Any], uid: str) -> bool:
    return any(owner["uid"] == uid for owner in workload["metadata"].get("ownerReferences", []))


def _jobs(namespace: str) -> str:
    return f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs"


def _probe(name: str) -> dict[str, Any]:
    container = {"name": "ray-head", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "labels": {QUEUE_LABEL: "raykueue-probe"}},
        "spec": {
            "entrypoint": "none",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": {
                "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [container]}}}
            },
        },
    }
