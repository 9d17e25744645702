"""Waiting for a state of some objects by list and watch: nothing is polled, and no event is missed in between."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from raykueue.errors import ClusterError
from raykueue.kube.access import Access
from raykueue.kube.session import NO_ANSWER, ApiRefused, ApiSession
from raykueue.kube.watch import lines

T = TypeVar("T")
Objects = dict[str, dict[str, Any]]
"""By name: these collections are of one namespace, or have none."""
SILENCE_S = 300.0
"""Of a watch; then everything is listed anew. What is waited for here may be quiet for long."""
_AGAIN_S = 0.2
"""Until a server that does not answer is asked again."""


async def changes(access: Access, path: str, selector: str = "") -> AsyncIterator[Objects]:
    """What there is, at once and after every change, for ever; the same mapping each time."""
    params = {"labelSelector": selector} if selector else {}
    async with ApiSession(access) as api:
        while True:
            try:
                listed = await api.get(path, params)
                found: Objects = {one["metadata"]["name"]: one for one in listed.get("items") or []}
                yield found
                watch = {**params, "watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"]}
                async with api.stream(path, watch, SILENCE_S) as content:
                    async for line, _ in lines(content.iter_any()):
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            break  # mostly 410: listed anew
                        one = event["object"]
                        if event["type"] == "DELETED":
                            found.pop(one["metadata"]["name"], None)
                        else:
                            found[one["metadata"]["name"]] = one
                        yield found
            except (ApiRefused, *NO_ANSWER):
                await asyncio.sleep(_AGAIN_S)


def until(
    access: Access,
    path: str,
    reached: Callable[[Objects], T | None],
    seconds: float,
    selector: str = "",
    look: Callable[[], None] = lambda: None,
) -> T:
    """What `reached` returns as soon as that is not None; an error that it raises ends the waiting.

    `look` is called now and then, and raises if the waiting should end.

    Raises:
        TimeoutError: not within `seconds`.
        ClusterError: called where an event loop runs.
    """

    async def wait() -> T:
        stream = changes(access, path, selector)
        deadline = time.monotonic() + seconds
        step = asyncio.ensure_future(anext(stream))
        try:
            while True:
                done, _ = await asyncio.wait({step}, timeout=0.5)
                look()
                if done:
                    if (found := reached(step.result())) is not None:
                        return found
                    step = asyncio.ensure_future(anext(stream))
                if time.monotonic() > deadline:
                    raise TimeoutError
        finally:
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
            await stream.aclose()  # type: ignore[attr-defined]  # a generator

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    raise ClusterError("waiting blocks, so it must not be called from an event loop")
