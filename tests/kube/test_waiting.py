from __future__ import annotations

import asyncio

import pytest

from raykueue.errors import ClusterError
from raykueue.kube.waiting import Objects, until
from tests.kube.fake_api import FakeApi

PODS = "/api/v1/namespaces/n/pods"


async def _watched(api: FakeApi) -> None:
    while not api.watching("Pod"):
        await asyncio.sleep(0.01)


def test_a_wait_returns_with_the_event_and_sees_what_came_in_between() -> None:
    seen: list[list[str]] = []

    def reached(pods: Objects) -> str | None:
        seen.append(sorted(pods))
        return "both" if len(pods) == 2 else None

    async def test() -> None:
        async with FakeApi() as api:
            api.put("Pod", "a", "n")
            waiting = asyncio.create_task(asyncio.to_thread(until, api.access, PODS, reached, 10))
            await _watched(api)
            api.put("Pod", "short", "n")
            api.remove("Pod", "a", "n")
            api.put("Pod", "b", "n")
            assert await waiting == "both"
            assert seen[0] == ["a"]
            assert seen[1] == ["a", "short"] or seen[-1] == ["a", "short"]

    asyncio.run(test())


def test_a_watch_that_expires_or_breaks_is_begun_anew() -> None:
    async def test() -> None:
        async with FakeApi() as api:
            waiting = asyncio.create_task(asyncio.to_thread(until, api.access, PODS, lambda pods: pods or None, 10))
            await _watched(api)
            api.expire_watches("Pod")
            api.put("Pod", "a", "n")
            assert list(await waiting) == ["a"]

    asyncio.run(test())


def test_what_does_not_come_in_time_is_a_timeout() -> None:
    async def test() -> None:
        async with FakeApi() as api:
            with pytest.raises(TimeoutError):
                await asyncio.to_thread(until, api.access, PODS, lambda _: None, 0.1)

    asyncio.run(test())


def test_an_error_of_the_look_ends_the_waiting() -> None:
    def give_up() -> None:
        raise ClusterError("the run was ended")

    async def test() -> None:
        async with FakeApi() as api:
            with pytest.raises(ClusterError, match="the run was ended"):
                await asyncio.to_thread(until, api.access, PODS, lambda _: None, 10, "", give_up)

    asyncio.run(test())


def test_nobody_waits_in_an_event_loop() -> None:
    async def test() -> None:
        async with FakeApi() as api:
            with pytest.raises(ClusterError, match="must not be called from an event loop"):
                until(api.access, PODS, lambda _: None, 10)

    asyncio.run(test())
