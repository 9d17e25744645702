from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from raykueue.controllers.settings import DEFAULT, Settings
from raykueue.errors import ClusterError
from raykueue.run.lease import Leases

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


def test_readers_are_together_and_a_writer_is_alone() -> None:
    async def scenario() -> None:
        leases = Leases(Controllers().change)
        await leases.shared("a")
        await leases.shared("b")
        writer = begin(leases.exclusive("w", DEFAULT))
        await leases.release("a")
        await turns()
        assert not writer.done()
        await leases.release("b")
        await writer
        reader = begin(leases.shared("c"))
        other = begin(leases.exclusive("x", DEFAULT))
        await turns()
        assert not reader.done()
        assert not other.done()
        await leases.release("w")
        await other
        await leases.release("x")
        await reader

    run(scenario())


def test_a_waiting_writer_goes_before_new_readers() -> None:
    async def scenario() -> None:
        leases = Leases(Controllers().change)
        await leases.shared("a")
        writer = begin(leases.exclusive("w", GATED))
        await turns()
        late = begin(leases.shared("b"))
        await turns()
        assert not late.done()
        await leases.release("a")
        await writer
        assert not late.done()
        await leases.release("w")
        await late

    run(scenario())


def test_settings_change_once_for_equal_ones_and_come_back_with_the_next_reader() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        await leases.shared("a")
        await leases.release("a")
        for settings in (GATED, Settings(kuberay_gates={"A": True}), OTHER):
            await leases.exclusive("w", settings)
            await leases.release("w")
        assert controllers.given == [GATED, OTHER]
        await asyncio.gather(*(leases.shared(name) for name in ("a", "b", "c")))
        assert controllers.given == [GATED, OTHER, DEFAULT]

    run(scenario())


def test_nobody_runs_before_a_change_is_over() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        controllers.go.clear()
        writer = begin(leases.exclusive("w", GATED))
        await turns()
        reader = begin(leases.shared("a"))
        await turns()
        assert not writer.done()
        assert not reader.done()
        controllers.go.set()
        await writer

        await turns()
        assert not reader.done()
        await given_up(reader)

    run(scenario())


def test_a_holder_that_is_dropped_holds_nobody_up() -> None:
    async def scenario() -> None:
        leases = Leases(Controllers().change)
        await leases.shared("a")
        await leases.release("a")
        await leases.release("a")
        await leases.release("never had one")
        await leases.exclusive("w", DEFAULT)
        reader = begin(leases.shared("b"))
        await leases.release("somebody else")
        await turns()
        assert not reader.done()
        await leases.release("w")
        await reader

    run(scenario())


def test_a_writer_that_gives_up_waiting_lets_readers_go_on() -> None:
    async def scenario() -> None:
        leases = Leases(Controllers().change)
        await leases.shared("a")
        writer = begin(leases.exclusive("w", GATED))
        await turns()
        reader = begin(leases.shared("b"))
        await turns()
        await given_up(writer)
        await reader

    run(scenario())


def test_a_reader_that_gives_up_waiting_is_no_reader() -> None:
    async def scenario() -> None:
        leases = Leases(Controllers().change)
        await leases.exclusive("w", DEFAULT)
        reader = begin(leases.shared("a"))
        await turns()
        await given_up(reader)
        await leases.release("w")
        await leases.exclusive("x", DEFAULT)

    run(scenario())


def test_a_change_that_fails_lets_others_go_on_who_do_not_trust_what_is_in_force() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        controllers.fails = 1
        with pytest.raises(ClusterError, match="it does not start"):
            await leases.exclusive("w", GATED)
        await leases.shared("a")
        # The default settings were in force before; whether they still are is not known.
        assert controllers.given == [GATED, DEFAULT]
        await leases.shared("b")
        assert controllers.given == [GATED, DEFAULT]

    run(scenario())


def test_a_change_whose_asker_is_gone_is_waited_for_and_counts() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        controllers.go.clear()
        writer = begin(leases.exclusive("w", GATED))
        await turns()
        writer.cancel()
        next_one = begin(leases.exclusive("x", GATED))
        await turns()
        assert not next_one.done()
        controllers.go.set()
        await next_one
        assert writer.cancelled()
        assert controllers.given == [GATED]

    run(scenario())


def test_a_way_back_to_the_default_that_fails_is_tried_again_by_the_next_reader() -> None:
    async def scenario() -> None:
        controllers = Controllers()
        leases = Leases(controllers.change)
        await leases.exclusive("w", GATED)
        await leases.release("w")
        controllers.fails = 1
        with pytest.raises(ClusterError):
            await leases.shared("a")
        await leases.shared("b")
        assert controllers.given == [GATED, DEFAULT, DEFAULT]

    run(scenario())
