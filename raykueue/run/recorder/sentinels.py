"""How a stream is proven complete: by the echo of a write, or by a list.

*Sentinels*: one harmless object per kind, in a namespace of the recorder's own; a write to it shows up in its kind's
stream. None of them runs or is admitted: the Pod is gated, the Job suspended, the Workload inactive, and the Ray
objects belong to a controller that doesn't exist here, so KubeRay leaves them alone
(ray-operator/controllers/ray/utils/util.go ManagedByExternalController@v1.3.0).

*Lists*: where objects are few and live long, a consistent list proves the same for a quarter of the CPU, and without
Kueue's webhooks. A stream that has seen the newest revision in the list has seen every older one of that kind; what
is left is an object that was made and deleted between two looks. Node has no sentinel anyway: a node that doesn't
exist would be a place to run on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from raykueue.errors import RecorderError
from raykueue.kube.session import NO_ANSWER, ApiRefused, ApiSession
from raykueue.model.events import Object
from raykueue.model.kinds import BY_NAME

PREFIX = "raykueue-sentinel-"
"""Objects in a namespace of this prefix, or without namespace and so named, are no part of any journal."""
ANNOTATION = "raykueue.dev/barrier"
REQUIRED = ("RayJob", "RayCluster", "Workload", "Pod", "Job")
"""Their objects come and go quickly and decide every judgement: a start fails if one is served but its sentinel is
refused. Any other kind falls back to lists."""
_STATUS = {"RayJob": "message", "RayCluster": "reason"}
"""Fields to write to instead of an annotation: a write to the status costs half, and asks no webhook of Kueue's."""
_FIRST = ("Namespace", "ServiceAccount")
"""Created before the others, which need them."""
_NOBODY = "kueue.x-k8s.io/multikueue"

_CONTAINERS = [{"name": "none", "image": "none", "resources": {"requests": {"cpu": "1m"}, "limits": {"cpu": "1m"}}}]
_TEMPLATE = {"spec": {"containers": _CONTAINERS}}
_RAY_CLUSTER = {"headGroupSpec": {"rayStartParams": {}, "template": _TEMPLATE}}


def is_sentinel(found: Object) -> bool:
    """Whether an object is a sentinel, of this run or another, or lives in a sentinel's namespace."""
    metadata = found["metadata"]
    return str(metadata.get("namespace") or metadata.get("name")).startswith(PREFIX)


def bodies(name: str) -> dict[str, dict[str, Any]]:
    """{kind: everything but apiVersion, kind and metadata}; `name` is that of every sentinel and of the namespace."""
    return {
        "Namespace": {},
        "ServiceAccount": {"automountServiceAccountToken": False},
        "Role": {"rules": []},
        "RoleBinding": {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}},
        "LimitRange": {"spec": {"limits": []}},
        "Service": {"spec": {"clusterIP": "None", "ports": [{"port": 1}]}},
        "Pod": {
            "spec": {
                "serviceAccountName": name,
                "schedulingGates": [{"name": "raykueue.dev/sentinel"}],
                "containers": _CONTAINERS,
            }
        },
        "Job": {"spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": _CONTAINERS}}}},
        "RayJob": {"spec": {"managedBy": _NOBODY, "entrypoint": "none", "rayClusterSpec": _RAY_CLUSTER}},
        "RayCluster": {"spec": {"managedBy": _NOBODY, **_RAY_CLUSTER}},
        "Workload": {
            "spec": {
                "active": False,
                "podSets": [
                    {
                        "name": "main",
                        "count": 1,
                        "template": {"spec": {"restartPolicy": "Never", "containers": _CONTAINERS}},
                    }
                ],
            }
        },
    }


class Sentinels:
    """Creates, touches and deletes the sentinels of one recorder."""

    def __init__(self, api: ApiSession, name: str, versions: Mapping[str, str]) -> None:
        """`versions`: {kind: group-version} of the kinds that are watched."""
        self._api = api
        self._name = name
        self._versions = versions
        self.kinds: tuple[str, ...] = ()
        """That have a sentinel, once created."""
        self.refused: dict[str, str] = {}
        """{kind: why} of those that should have one."""

    async def create(self) -> None:
        """Creates one for each kind of `bodies` that is watched; one that exists already is taken over.

        Raises:
            RecorderError: the sentinel of a kind without which nothing can be judged was refused.
        """
        table = {kind: body for kind, body in bodies(self._name).items() if kind in self._versions}
        for kind in _FIRST:
            await self._create(kind, table.pop(kind))
        await asyncio.gather(*(self._create(kind, body) for kind, body in table.items()))
        if missing := [f"{kind}: {self.refused[kind]}" for kind in REQUIRED if kind in self.refused]:
            raise RecorderError("the API server refuses sentinels, so no barrier can be proven: " + "; ".join(missing))

    async def touch(self, kind: str, token: str) -> int:
        """Writes to the sentinel of a kind and returns the revision of that write.

        Raises:
            ApiRefused, NO_ANSWER: it was not written.
        """
        if field := _STATUS.get(kind):
            answer = await self._api.merge_patch(f"{self._path(kind)}/status", {"status": {field: token}})
        else:
            answer = await self._api.merge_patch(self._path(kind), {"metadata": {"annotations": {ANNOTATION: token}}})
        return int(answer["metadata"]["resourceVersion"])

    async def present(self, kind: str) -> tuple[int, dict[str, int]]:
        """The revision of a consistent list of that kind, and {uid: revision} of what was in it.

        Raises:
            ApiRefused, NO_ANSWER: it was not listed.
        """
        listed = await self._api.get_metadata(BY_NAME[kind].path(self._versions[kind]))
        objects = (found["metadata"] for found in listed.get("items") or [])
        return int(listed["metadata"]["resourceVersion"]), {
            str(metadata["uid"]): int(metadata["resourceVersion"]) for metadata in objects
        }

    async def delete(self) -> None:
        """Deletes them all, as far as the server answers."""

        async def gone(kind: str) -> None:
            with contextlib.suppress(ApiRefused, *NO_ANSWER):
                await self._api.delete(self._path(kind), {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})

        await asyncio.gather(*(gone(kind) for kind in self.kinds if kind != "Namespace"))
        await gone("Namespace")

    def _path(self, kind: str, *, collection: bool = False) -> str:
        return BY_NAME[kind].path(self._versions[kind], self._name, "" if collection else self._name)

    async def _create(self, kind: str, body: Mapping[str, Any]) -> None:
        metadata = {"name": self._name, "labels": {"app.kubernetes.io/managed-by": "raykueue"}}
        whole = {"apiVersion": self._versions[kind], "kind": kind, "metadata": metadata, **body}
        try:
            await self._api.create(self._path(kind, collection=True), whole)
        except ApiRefused as refused:
            if refused.status != 409:
                self.refused[kind] = str(refused)
                return
        self.kinds += (kind,)
        # Keeping track of who owns which field is a third of the cost of a write. An object without managedFields
        # stays without (k8s.io/apimachinery pkg/util/managedfields/internal/skipnonapplied.go@v0.34.4).
        await self._api.merge_patch(self._path(kind), {"metadata": {"managedFields": [{}]}})
