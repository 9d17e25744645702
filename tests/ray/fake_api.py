"""An API server for RayJobs and pods, in this process: list, watch, get, and merge patches of pod status."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Object = dict[str, Any]


def rayjob(
    name: str, *, mode: str = "K8sJobMode", job_id: str = "", cluster: str = "", namespace: str = "ns", uid: str = ""
) -> Object:
    """A RayJob in the attempt `job_id` on `cluster`, or in none."""
    status = {"jobDeploymentStatus": "Running" if job_id else "Suspended"}
    if job_id:
        status["jobId"] = job_id
    if cluster:
        status["rayClusterName"] = cluster
        status["dashboardURL"] = f"{cluster}-head-svc.{namespace}.svc.cluster.local:8265"
    return {
        "metadata": {"namespace": namespace, "name": name, "uid": uid or f"rayjob-{name}"},
        "spec": {"submissionMode": mode, "entrypoint": "python job.py"},
        "status": status,
    }


def head(cluster: str, *, phase: str = "Running", sidecar: bool = False, namespace: str = "ns", n: int = 1) -> Object:
    """The n-th head pod of a cluster."""
    labels = {"ray.io/node-type": "head", "ray.io/cluster": cluster}
    containers = ["ray-head", "ray-job-submitter"] if sidecar else ["ray-head"]
    return _pod(f"{cluster}-head-{n}", namespace, labels, "RayCluster", containers, phase)


def submitter(job: str, *, phase: str = "Running", job_id: str = "", namespace: str = "ns", n: int = 1) -> Object:
    """The n-th submitter pod of the RayJob `job`."""
    pod = _pod(f"{job}-{n}", namespace, {"job-name": job}, "Job", ["ray-job-submitter"], phase)
    if job_id:
        pod["spec"]["containers"][0]["env"] = [{"name": "RAY_JOB_SUBMISSION_ID", "value": job_id}]
    return pod


def redis_clean_up(cluster: str, *, namespace: str = "ns") -> Object:
    """The pod that cleans Redis after a cluster."""
    labels = {"ray.io/node-type": "redis-cleanup", "ray.io/cluster": cluster}
    return _pod(f"{cluster}-redis-cleanup", namespace, labels, "Job", ["ray-head"], "Running")


def _pod(name: str, namespace: str, labels: Object, owner: str, containers: list[str], phase: str) -> Object:
    status: Object = {"phase": phase}
    if phase == "Running":
        status["containerStatuses"] = [
            {"name": each, "ready": True, "state": {"running": {"startedAt": "2025-01-01T00:00:00Z"}}}
            for each in containers
        ]
        status["conditions"] = [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}]
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": f"pod-{name}",
            "labels": labels,
            "ownerReferences": [{"kind": owner, "name": "owner", "controller": True}],
        },
        "spec": {"containers": [{"name": each} for each in containers]},
        "status": status,
    }


class FakeApi:
    """Holds objects by path; `patching` is awaited before a status patch is taken."""

    def __init__(self) -> None:
        self.patches: list[tuple[str, Object]] = []
        self.patching: Callable[[str], Awaitable[None]] | None = None
        self.gets: list[str] = []
        self.refuse_patches = 0
        self.refuse_with = 409
        self._rev = 10
        self._objects: dict[str, dict[tuple[str, str], Object]] = {"pods": {}, "rayjobs": {}}
        self._watches: dict[str, list[asyncio.Queue[bytes]]] = {"pods": [], "rayjobs": []}

    def put(self, *objects: Object) -> None:
        """Creates or replaces."""
        for found in objects:
            kind = "rayjobs" if "submissionMode" in found["spec"] else "pods"
            key = (found["metadata"]["namespace"], found["metadata"]["name"])
            what = "MODIFIED" if key in self._objects[kind] else "ADDED"
            self._store(kind, key, copy.deepcopy(found), what)

    def delete(self, *objects: Object) -> None:
        """Removes."""
        for found in objects:
            kind = "rayjobs" if "submissionMode" in found["spec"] else "pods"
            key = (found["metadata"]["namespace"], found["metadata"]["name"])
            self._send(kind, "DELETED", self._objects[kind].pop(key))

    def pod(self, name: str, namespace: str = "ns") -> Object:
        """As stored."""
        return self._objects["pods"][namespace, name]

    def _store(self, kind: str, key: tuple[str, str], found: Object, what: str) -> None:
        self._objects[kind][key] = found
        self._send(kind, what, found)

    def _send(self, kind: str, what: str, found: Object) -> None:
        self._rev += 1
        found["metadata"]["resourceVersion"] = str(self._rev)
        line = json.dumps({"type": what, "object": found}).encode() + b"\n"
        for queue in self._watches[kind]:
            queue.put_nowait(line)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Yields the server's address."""
        application = web.Application()
        application.router.add_get("/api/v1/{kind:pods}", self._collection)
        application.router.add_get("/apis/ray.io/v1/{kind:rayjobs}", self._collection)
        application.router.add_get("/api/v1/namespaces/{namespace}/pods/{name}", self._get)
        application.router.add_patch("/api/v1/namespaces/{namespace}/pods/{name}/status", self._patch)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            yield f"http://{host}:{port}"
        finally:
            await runner.cleanup()

    async def _collection(self, request: web.Request) -> web.StreamResponse:
        kind = request.match_info["kind"]
        if request.query.get("watch") != "true":
            metadata = {"resourceVersion": str(self._rev)}
            return web.json_response({"metadata": metadata, "items": list(self._objects[kind].values())})
        assert request.query["resourceVersion"] <= str(self._rev)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        since = int(request.query["resourceVersion"])
        for found in self._objects[kind].values():
            if int(found["metadata"]["resourceVersion"]) > since:
                queue.put_nowait(json.dumps({"type": "ADDED", "object": found}).encode() + b"\n")
        self._watches[kind].append(queue)
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(await queue.get())

    async def _get(self, request: web.Request) -> web.Response:
        key = (request.match_info["namespace"], request.match_info["name"])
        self.gets.append(key[1])
        found = self._objects["pods"].get(key)
        return web.json_response(found) if found else web.json_response({"message": "not found"}, status=404)

    async def _patch(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/merge-patch+json"
        key = (request.match_info["namespace"], request.match_info["name"])
        if self.patching is not None:
            await self.patching(key[1])
        if self.refuse_patches:
            self.refuse_patches -= 1
            return web.json_response({"message": "the object has been modified"}, status=self.refuse_with)
        found, body = copy.deepcopy(self._objects["pods"][key]), await request.json()
        if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
            return web.json_response({"message": "the object has been modified"}, status=409)
        found["status"].update(body["status"])
        self.patches.append((key[1], body["status"]))
        self._store("pods", key, found, "MODIFIED")
        return web.json_response(found)
