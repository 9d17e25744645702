"""Who may use the cluster: many tests at once with the same settings, or one alone with settings of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from raykueue.controllers.settings import DEFAULT, Settings


class Leases:
    """A readers-writer lock whose writers bring settings. For one event loop.

    Waiting writers go before new readers, so that an exclusive test is not starved; settings change only while nobody
    holds a lease, and only when the next holder wants others than are in force.
    """

    def __init__(self, change: Callable[[Settings], Awaitable[None]]) -> None:
        """`change` puts settings into force; it is never called while somebody holds a lease."""
        self._change = change
        self._in_force: Settings | None = DEFAULT
        """None while it is not known: a change that failed may have left anything."""
        self._readers: set[Hashable] = set()
        self._writer: Hashable | None = None
        self._waiting_writers = 0
        self._turn = asyncio.Condition()

    async def shared(self, holder: Hashable) -> None:
        """Waits until `holder` may run beside others, with the default settings in force."""
        async with self._turn:
            await self._turn.wait_for(lambda: self._writer is None and not self._waiting_writers)
            await self._put_into_force(DEFAULT)
            self._readers.add(holder)

    async def exclusive(self, holder: Hashable, settings: Settings) -> None:
        """Waits until `holder` is alone, with `settings` in force."""
        async with self._turn:
            self._waiting_writers += 1
            try:
                await self._turn.wait_for(lambda: self._writer is None and not self._readers)
                self._writer = holder
            finally:
                self._waiting_writers -= 1
                self._turn.notify_all()  # readers wait for the last waiting writer, also for one that gave up
            try:
                await self._put_into_force(settings)
            except BaseException:
                self._writer = None
                self._turn.notify_all()
                raise

    async def release(self, holder: Hashable) -> None:
        """Gives a lease back; nothing happens if `holder` has none."""
        async with self._turn:
            self._readers.discard(holder)
            if self._writer == holder:
                self._writer = None
            self._turn.notify_all()

    async def _put_into_force(self, settings: Settings) -> None:
        if self._in_force is not None and self._in_force.key() == settings.key():
            return
        self._in_force = None
        change = asyncio.ensure_future(self._change(settings))
        try:
            await asyncio.shield(change)
        except asyncio.CancelledError:
            # Its holder died, but a change goes on to its end; until then nobody else has a turn.
            await asyncio.wait({change})
            if change.exception() is None:
                self._in_force = settings
            raise
        self._in_force = settings
