"""A small API server in this process: discovery, chunked lists, watches with bookmarks and 410, patches that echo.

One counter over all kinds, as on one etcd. It validates nothing.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

from aiohttp import web

from raykueue.kube.access import Access
from raykueue.model.kinds import KINDS, Kind

_CLOSE = object()


class FakeApi:
    """Use as `async with`; change objects with `put`, `remove` and the other plain methods, from its loop only."""

    def __init__(self, *, without: Iterable[str] = (), page: int = 500) -> None:
        self.rev = 100
        self.requests: Counter[tuple[str, str]] = Counter()
        """(verb or LIST or WATCH, kind) → how often."""
        self.refuse: dict[tuple[str, str], int] = {}
        """(verb or LIST or WATCH, kind) → status code to answer with."""
        self.held: set[str] = set()
        """Kinds whose events are not delivered for now."""
        self.oldest: dict[str, int] = {}
        """Kind → revisions below this are compacted away: a watch from there gets 410."""
        self._page = page
        self._kinds = {kind.plural: kind for kind in KINDS if kind.name not in without}
        self._objects: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
        self._history: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        self._watchers: dict[str, list[asyncio.Queue[Any]]] = {}
        self._runner: web.AppRunner | None = None
        self.access = Access("", ca_file="")

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.access = Access(f"http://127.0.0.1:{self._runner.addresses[0][1]}", ca_file="")
        return self

    async def __aexit__(self, *_: object) -> None:
        for kind in list(self._watchers):
            self.break_watches(kind)
        assert self._runner is not None
        await self._runner.cleanup()

    def put(self, kind: str, name: str, namespace: str = "", /, **fields: Any) -> int:
        """Creates an object or replaces its fields; returns the revision."""
        found = self._objects.setdefault(kind, {}).get((namespace, name))
        self.rev += 1
        metadata = dict(found["metadata"]) if found else {"name": name, "uid": f"{kind}-{name}-{self.rev}"}
        metadata |= fields.pop("metadata", {})
        metadata["resourceVersion"] = str(self.rev)
        metadata["managedFields"] = [{"manager": "test"}]
        if namespace:
            metadata["namespace"] = namespace
        body = {"metadata": metadata, **fields}
        self._objects[kind][namespace, name] = body
        self._publish(kind, "MODIFIED" if found else "ADDED", body)
        return self.rev

    def remove(self, kind: str, name: str, namespace: str = "") -> int:
        """Deletes an object; the event carries the revision of the deletion."""
        body = self._objects[kind].pop((namespace, name))
        self.rev += 1
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.rev)}}
        self._publish(kind, "DELETED", body)
        return self.rev

    def names(self, kind: str) -> list[str]:
        return [name for _, name in self._objects.get(kind, {})]

    def bookmark(self, kind: str) -> None:
        """Tells every watch of a kind the current revision."""
        body = {"kind": kind, "metadata": {"resourceVersion": str(self.rev)}}
        self._send(kind, {"type": "BOOKMARK", "object": body})

    def expire_watches(self, kind: str) -> None:
        """Every watch of a kind gets an ERROR event with code 410."""
        self._send(kind, {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}})
        self.break_watches(kind)

    def break_watches(self, kind: str) -> None:
        """Ends every watch of a kind, in order after what was sent."""
        for queue in self._watchers.get(kind, []):
            queue.put_nowait(_CLOSE)

    def compact(self, kind: str) -> None:
        """Forgets the events of a kind so far."""
        self.oldest[kind] = self.rev
        self._history[kind] = []

    def release(self, kind: str) -> None:
        """Delivers what was held."""
        self.held.discard(kind)
        self._send(kind, None)

    def watching(self, kind: str) -> int:
        """How many watches of a kind are open."""
        return len(self._watchers.get(kind, []))

    def _publish(self, kind: str, what: str, body: dict[str, Any]) -> None:
        event = {"type": what, "object": {"apiVersion": "fake/v1", "kind": kind, **copy.deepcopy(body)}}
        self._history.setdefault(kind, []).append((self.rev, event))
        self._send(kind, event)

    def _send(self, kind: str, event: Any) -> None:
        for queue in self._watchers.get(kind, []):
            queue.put_nowait(event)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        if parts == ["apis"]:
            return web.json_response({"groups": self._groups()})
        version = "v1" if parts[0] == "api" else "/".join(parts[1:3])
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        if not rest:
            return web.json_response({"resources": [{"name": kind.plural} for kind in self._of(version)]})
        namespace = ""
        if len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        if rest[0] not in self._kinds:
            return self._status(404, "not found")
        kind, name = self._kinds[rest[0]].name, rest[1] if len(rest) > 1 else ""
        verb = request.method if name or request.method == "POST" else "LIST"
        verb = "WATCH" if request.query.get("watch") else verb
        self.requests[verb, kind] += 1
        if status := self.refuse.get((verb, kind)):
            return self._status(status, "refused by the test")
        match verb:
            case "WATCH":
                return await self._watch(request, kind)
            case "LIST":
                return self._list(request, kind)
            case "POST":
                body = await request.json()
                name = body["metadata"]["name"]
                if (namespace, name) in self._objects.get(kind, {}):
                    return self._status(409, "exists")
                self.put(kind, name, namespace, **body)
            case "PATCH":
                self._merge(kind, namespace, name, await request.json())
            case "DELETE":
                self.remove(kind, name, namespace)
                return web.json_response({"kind": "Status"})
        return web.json_response(self._objects[kind][namespace, name])

    def _merge(self, kind: str, namespace: str, name: str, patch: dict[str, Any]) -> None:
        found = self._objects[kind][namespace, name]
        fields = {key: value for key, value in found.items() if key != "metadata"}
        annotations = found["metadata"].get("annotations", {})
        wanted = annotations | patch.get("metadata", {}).get("annotations", {})
        status = fields.get("status", {}) | patch.get("status", {})
        if (wanted, status) != (annotations, fields.get("status", {})):  # a patch that changes nothing is no write
            self.put(kind, name, namespace, metadata={"annotations": wanted}, **{**fields, "status": status})

    def _list(self, request: web.Request, kind: str) -> web.StreamResponse:
        objects = list(self._objects.get(kind, {}).values())
        start, rev = 0, self.rev
        if token := request.query.get("continue"):
            start, rev = (int(part) for part in token.split("@"))
            if rev < self.oldest.get(kind, 0):
                return self._status(410, "the continue token is too old")
        end = start + min(self._page, int(request.query.get("limit", len(objects))))
        metadata = {"resourceVersion": str(rev)}
        if end < len(objects):
            metadata["continue"] = f"{end}@{rev}"
        return web.json_response({"kind": f"{kind}List", "metadata": metadata, "items": objects[start:end]})

    async def _watch(self, request: web.Request, kind: str) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        if since < self.oldest.get(kind, 0):
            return self._status(410, f"too old resource version: {since}")
        answer = web.StreamResponse()
        await answer.prepare(request)
        queue: asyncio.Queue[Any] = asyncio.Queue()
        for rev, event in self._history.get(kind, []):
            if rev > since:
                queue.put_nowait(event)
        self._watchers.setdefault(kind, []).append(queue)
        late: list[Any] = []
        try:
            while (event := await queue.get()) is not _CLOSE:
                late.append(event)
                if kind not in self.held:
                    for one in late:
                        if one is not None:
                            await answer.write(json.dumps(one).encode() + b"\n")
                    late.clear()
        except ConnectionError:
            pass
        finally:
            self._watchers[kind].remove(queue)
        return answer

    def _groups(self) -> list[dict[str, Any]]:
        groups: dict[str, set[str]] = {}
        for kind in self._kinds.values():
            for version in kind.versions:
                if "/" in version:
                    groups.setdefault(version.split("/")[0], set()).add(version)
        return [{"name": name, "versions": [{"groupVersion": gv} for gv in gvs]} for name, gvs in groups.items()]

    def _of(self, version: str) -> list[Kind]:
        return [kind for kind in self._kinds.values() if version in kind.versions]

    def _status(self, code: int, message: str) -> web.Response:
        return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)
