"""Controllers that take settings over, and an event loop in which holders of leases take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from raykueue.controllers.settings import Settings
from raykueue.errors import ClusterError

GATED = Settings(kuberay_gates={"A": True})
OTHER = Settings(kuberay_gates={"B": True})


class Controllers:
    """Take settings over, one change at a time, and say what they were given."""

    def __init__(self) -> None:
        self.given: list[Settings] = []
        self.fails = 0
        self.go = asyncio.Event()
        self.go.set()

    async def change(self, settings: Settings) -> None:
        self.given.append(settings)
        await self.go.wait()
        if self.fails:
            self.fails -= 1
            raise ClusterError("it does not start")


async def turns(count: int = 20) -> None:
    """Lets everybody go as far as they can."""
    for _ in range(count):
        await asyncio.sleep(0)


def begin(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(work)


async def given_up(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(10):
            await work

    asyncio.run(limited())
