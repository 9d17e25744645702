"""One violation of our own beside every run's tests: if the ledger doesn't see it, the run proves nothing.

A pod that nobody pays for, in a namespace of its own: it belongs to a queued RayJob that never gets quota. It is never
scheduled, and KubeRay leaves its RayCluster alone (`managedBy`), so it costs the cluster next to nothing.
"""

from __future__ import annotations

import uuid
from typing import Any

from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from raykueue.kube.apply import create
from raykueue.kube.client import Api, ApiError
from raykueue.model.quantities import describe_all
from raykueue.run.recorder.scopes import ScopeNames
from raykueue.run.recording import Recording

SCOPE = "canary"
ASKS = {"cpu": "1", "memory": "1Gi"}
SEEN = {"cpu": 1000, "memory": 1 << 30}
OWNER_SECONDS = 15.0
RULE, CAUSE = "pods-covered", "never-charged"


class Canary:
    """The seeded violation of one run."""

    def __init__(self, api: Api, recording: Recording) -> None:
        self._api = api
        self._recording = recording
        self._namespace = f"raykueue-canary-{uuid.uuid4().hex[:6]}"

    def release(self) -> None:
        """Commits the violation.

        Raises:
            ClusterError: the API server refuses an object of it.
        """
        self._recording.open(ScopeNames(name=SCOPE, namespaces=(self._namespace,)))
        create(self._api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}})
        job = self._create(_rayjob())
        cluster = self._create(_raycluster(), owner=job)
        self._create(_pod(), owner=cluster)

    def check(self) -> str:
        """Why the run proves nothing; empty if the ledger saw the violation, and its amount.

        Raises:
            RecorderError: nothing can be judged at all.
        """
        answer = self._recording.judge(SCOPE, deadline_s=0)
        found = [one for one in answer.findings if (one.rule, one.cause) == (RULE, CAUSE)]
        if any(dict(one.peak) == SEEN for one in found):
            return ""
        saw = "; ".join(one.text for one in answer.findings) or "nothing"
        return (
            f"the canary was not seen: a pod of {describe_all(SEEN)} in {self._namespace} that nobody pays for must be "
            f"found by {RULE} ({CAUSE}), but the ledger saw {saw}; so no test of this run proves anything"
        )

    def remove(self) -> None:
        """Deletes what it made; Kubernetes finishes that by itself."""
        self._api.delete(f"/api/v1/namespaces/{self._namespace}")

    def _create(self, manifest: dict[str, Any], owner: dict[str, Any] | None = None) -> dict[str, Any]:
        manifest["metadata"]["namespace"] = self._namespace
        if owner is not None:
            manifest["metadata"]["ownerReferences"] = [
                {
                    "apiVersion": owner["apiVersion"],
                    "kind": owner["kind"],
                    "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                }
            ]
        return _created(self._api, manifest)


def _not_seen_yet(error: BaseException) -> bool:
    """Kueue's webhook looks the owner up in its cache, which may trail the API server by a moment."""
    return isinstance(error, ApiError) and error.code == 404 and "denied the request" in error.message


@retry(
    retry=retry_if_exception(_not_seen_yet), wait=wait_fixed(0.1), stop=stop_after_delay(OWNER_SECONDS), reraise=True
)
def _created(api: Api, manifest: dict[str, Any]) -> dict[str, Any]:
    return create(api, manifest)


def _rayjob() -> dict[str, Any]:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "canary", "labels": {"kueue.x-k8s.io/queue-name": "no-such-queue"}},
        "spec": {"entrypoint": "none", "shutdownAfterJobFinishes": True, "rayClusterSpec": _cluster_spec()},
    }


def _raycluster() -> dict[str, Any]:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "canary"},
        "spec": {"managedBy": "kueue.x-k8s.io/multikueue", **_cluster_spec()},
    }


def _cluster_spec() -> dict[str, Any]:
    template = {"spec": {"containers": [_container()]}}
    return {"headGroupSpec": {"rayStartParams": {}, "template": template}}


def _pod() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "canary", "labels": {"ray.io/node-type": "head"}},
        "spec": {"containers": [_container()], "nodeSelector": {"raykueue.dev/never": "scheduled"}},
    }


def _container() -> dict[str, Any]:
    return {"name": "canary", "image": "none", "resources": {"requests": dict(ASKS)}}
