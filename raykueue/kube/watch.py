"""The complete stream of one kind: list, watch, go on from where it broke, and say so where events were missed.

Our own loop, because the client's `Watch` turns retry off once a server timeout is given and resumes only one 410.
No selectors: with one, DELETED can mean "no longer matches" (k8s.io/apiserver pkg/storage/etcd3/watcher.go:617-634
@v0.34.4).

After a 410 the kind is listed anew. Then the sink gets, in this order:
* a `Gap` from the last revision seen to that of the list: an object that lived only in between was never seen;
* an `Event` ADDED with `listed=True` for each object that is new or has changed;
* an `Event` DELETED, with the list's revision and the object as last seen, for each that is gone: it was deleted
  somewhere in the gap, whose reason says how many there were;
* `Listed`.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any, TypeAlias

from raykueue.kube.session import NO_ANSWER, ApiRefused, ApiSession
from raykueue.model.events import Event, Gap, Listed
from raykueue.model.kinds import Kind

CHUNK = 500
"""Objects per page of a LIST."""
WATCH_S = (240, 360)
"""Server timeout of one watch, spread so that the streams don't all reconnect at once."""
SILENCE_S = 90.0
"""A watch without a line for so long is taken for dead; bookmarks come about once a minute
(k8s.io/apiserver pkg/storage/cacher/cacher.go:75@v0.34.4)."""
BACK_OFF_S = (0.05, 1.0)
REFUSED_S = 10.0
"""403 and 404 for so long end the stream: an API server that starts answers so for a moment."""

Sink: TypeAlias = Callable[[Event | Listed | Gap], None]


class Expired(Exception):
    """The revision is too old to go on from: 410, as an answer or as an event."""


class Broken(Exception):
    """The watch ended otherwise than by its own timeout."""


class KindStream:
    """List and watch of one kind, until it is cancelled.

    Attributes:
        rev: the stream is complete up to here.
        reconnects: watches that broke or ended, and were opened again.
        gaps: how often events may have been missed.
        live: {uid: last event} of the objects that exist, as far as was seen.
        ended: why the stream is over for good; empty while it runs.
    """

    def __init__(
        self,
        api: ApiSession,
        kind: Kind,
        version: str,
        sink: Sink,
        advanced: Callable[[str, int], None],
        trouble: Callable[[str], None],
    ) -> None:
        """`advanced(kind, rev)` is called whenever `rev` grew, after the sink; `trouble(text)` when the record of
        this kind can't be trusted any more."""
        self.kind = kind
        self.version = version
        self.rev = 0
        self.reconnects = 0
        self.gaps = 0
        self.live: dict[str, Event] = {}
        self.ended = ""
        self._api = api
        self._path = kind.path(version)
        self._sink = sink
        self._advanced = advanced
        self._trouble = trouble

    async def start(self) -> None:
        """The first LIST: one `Event(listed=True)` per object, then `Listed`.

        Raises:
            ApiRefused, NO_ANSWER: there is nothing to go on from yet, so the caller decides.
        """
        objects, rev = await self._list_all()
        self._take_list(objects, rev, time.time_ns())

    async def watch(self) -> None:
        """Watches from the last revision for ever; returns only if the server refuses the kind for good."""
        failures = 0
        refused_since: float | None = None
        while True:
            before = self.rev
            try:
                await self._watch_once()
                refused_since = None
            except Expired as expired:
                if await self._relisted(str(expired)):
                    continue
            except ApiRefused as refused:
                if refused.status not in (403, 404):
                    refused_since = None
                elif refused_since is None:
                    refused_since = time.monotonic()
                elif time.monotonic() - refused_since > REFUSED_S:
                    self.ended = f"{self.kind.name}: the stream ended at revision {self.rev}: {refused}"
                    self._trouble(self.ended)
                    return
            except (Broken, *NO_ANSWER):
                refused_since = None
            self.reconnects += 1
            failures = 0 if self.rev > before else failures + 1
            if failures > 1:
                await asyncio.sleep(min(BACK_OFF_S[0] * 2 ** (failures - 2), BACK_OFF_S[1]))

    async def _list_all(self) -> tuple[list[dict[str, Any]], int]:
        """All objects at one revision: a page that expired starts the LIST again."""
        while True:
            objects: list[dict[str, Any]] = []
            params = {"limit": str(CHUNK)}
            try:
                while True:
                    page = await self._api.get(self._path, params)
                    objects += page.get("items") or []
                    token = page["metadata"].get("continue")
                    if not token:
                        return objects, int(page["metadata"]["resourceVersion"])
                    params = {"limit": str(CHUNK), "continue": token}
            except ApiRefused as refused:
                if refused.status != 410 or "continue" not in params:
                    raise

    async def _relisted(self, why: str) -> bool:
        try:
            objects, rev = await self._list_all()
        except (ApiRefused, *NO_ANSWER):
            return False  # the next watch says 410 again
        arrived = time.time_ns()
        present = {str(found["metadata"]["uid"]) for found in objects}
        gone = [self.live[uid] for uid in self.live if uid not in present]
        reason = f"{why}; {len(gone)} objects vanished" if gone else why
        self.gaps += 1
        self._sink(Gap(self.kind.name, self.rev, rev, arrived, reason))
        self._take_list(objects, rev, arrived, gone)
        return True

    def _take_list(
        self, objects: list[dict[str, Any]], rev: int, arrived: int, gone: list[Event] | None = None
    ) -> None:
        for found in objects:
            # A list names the kind once, for all its objects.
            found.setdefault("apiVersion", self.version)
            found.setdefault("kind", self.kind.name)
            self._take("ADDED", found, arrived, listed=True)
        for event in gone or []:
            del self.live[str(event.object["metadata"]["uid"])]
            self._sink(Event(self.kind.name, "DELETED", rev, arrived, event.object))
        self._sink(Listed(self.kind.name, rev, arrived))
        self._advance(rev)

    async def _watch_once(self) -> None:
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": str(self.rev),
            "timeoutSeconds": str(random.randint(*WATCH_S)),  # noqa: S311 - spread, not secrecy
        }
        try:
            async with self._api.stream(self._path, params, SILENCE_S) as content:
                async for line, arrived in lines(content.iter_any()):
                    self._take_line(line, arrived)
        except ApiRefused as refused:
            if refused.status == 410:
                raise Expired(str(refused)) from refused
            raise

    def _take_line(self, line: bytes, arrived: int) -> None:
        try:
            event = json.loads(line)
        except ValueError as error:
            raise Broken(f"not JSON: {line[:80]!r}") from error
        found = event["object"]
        if event["type"] == "ERROR":
            if found.get("code") == 410:
                raise Expired(str(found.get("message")))
            raise Broken(str(found.get("message")))
        rev = int(found["metadata"]["resourceVersion"])
        if event["type"] != "BOOKMARK":
            if rev <= self.rev:
                # The watermark, and so every judgement, rests on this order.
                self._trouble(f"{self.kind.name}: unordered stream, revision {rev} arrived after {self.rev}")
            self._take(event["type"], found, arrived)
        self._advance(rev)

    def _take(self, what: Any, found: dict[str, Any], arrived: int, *, listed: bool = False) -> None:
        metadata = found["metadata"]
        metadata.pop("managedFields", None)
        uid, rev = str(metadata["uid"]), int(metadata["resourceVersion"])
        event = Event(self.kind.name, what, rev, arrived, found, listed)
        if what == "DELETED":
            self.live.pop(uid, None)
        else:
            if listed and uid in self.live and self.live[uid].rev == rev:
                return  # unchanged since before the gap
            self.live[uid] = event
        self._sink(event)

    def _advance(self, rev: int) -> None:
        if rev > self.rev:
            self.rev = rev
            self._advanced(self.kind.name, rev)


async def lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[tuple[bytes, int]]:
    """Whole lines of any length, each with the arrival time (ns) of its last chunk; a cut-off rest is dropped."""
    parts: list[bytes] = []
    async for chunk in chunks:
        arrived = time.time_ns()
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            parts.append(line)
            complete = b"".join(parts)
            parts.clear()
            if complete:
                yield complete, arrived
        if rest:
            parts.append(rest)
