"""Who may use the cluster: many tests at once that want the same settings, or one alone that ends components."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

from raykueue.controllers.settings import DEFAULT, Settings

PATIENCE = 16
"""So often somebody may be let in before others that came earlier, where passing by several of them counts as often.
That is two for each of eight test processes: enough to finish what they have of one kind, and nobody idles for long."""


@dataclass(eq=False)
class _Wish:
    """One holder, from its request until it gives its lease back."""

    holder: Hashable
    settings: Settings
    alone: bool
    turn: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    passed_by: int = 0
    """So many came later, and were let in before it."""
    changes: bool = False
    """It was let in to put its settings into force."""


class Leases:
    """A lock that is shared by whoever wants the same settings. For one event loop.

    Settings change only while nobody holds a lease, and only when the next holder wants others than are in force. It is
    first come, first served, but who wants what is in force may go before who doesn't, within `PATIENCE`: so settings
    change few times, and nobody is passed by more often than that.
    """

    def __init__(self, change: Callable[[Settings], Awaitable[None]]) -> None:
        """`change` puts settings into force; it is never called while anybody works with a lease."""
        self._change = change
        self._in_force: Settings | None = DEFAULT
        """None while it is not known: a change that failed may have left anything."""
        self._changing = False
        self._holders: dict[Hashable, _Wish] = {}
        self._waiting: list[_Wish] = []
        """In order of arrival."""

    async def take(self, holder: Hashable, settings: Settings = DEFAULT, *, alone: bool = False) -> None:
        """Waits until `holder` may run with `settings` in force: beside others that want the same, or alone."""
        wish = _Wish(holder, settings, alone)
        self._waiting.append(wish)
        self._let_in()
        try:
            await wish.turn
            if wish.changes:
                await self._put_into_force(settings)
        except BaseException:
            self._forget(wish)
            raise
        finally:
            if wish.changes:
                self._changing = False
            self._let_in()

    async def release(self, holder: Hashable) -> None:
        """Gives a lease back; nothing happens if `holder` has none."""
        self._holders.pop(holder, None)
        self._let_in()

    def _forget(self, wish: _Wish) -> None:
        if wish in self._waiting:
            self._waiting.remove(wish)
        elif self._holders.get(wish.holder) is wish:
            del self._holders[wish.holder]

    def _let_in(self) -> None:
        self._waiting = [wish for wish in self._waiting if not wish.turn.cancelled()]
        while (index := self._next()) is not None:
            wish = self._waiting.pop(index)
            for earlier in self._waiting[:index]:
                earlier.passed_by += 1
            self._holders[wish.holder] = wish
            wish.changes = self._changing = not self._is_in_force(wish.settings)
            wish.turn.set_result(None)

    def _next(self) -> int | None:
        """Whose turn it is, by its place among those that wait; None: nobody's."""
        if self._changing:
            return None
        impatience = 0
        for index, wish in enumerate(self._waiting):
            if self._is_in_force(wish.settings) and self._goes_with_the_others(wish):
                return index
            impatience += wish.passed_by + 1
            if impatience > PATIENCE:
                break
        return 0 if self._waiting and not self._holders else None

    def _goes_with_the_others(self, wish: _Wish) -> bool:
        """All holders want what is in force, as it does."""
        return not self._holders or not (wish.alone or any(one.alone for one in self._holders.values()))

    def _is_in_force(self, settings: Settings) -> bool:
        return self._in_force is not None and self._in_force.key() == settings.key()

    async def _put_into_force(self, settings: Settings) -> None:
        self._in_force = None
        change = asyncio.ensure_future(self._change(settings))
        try:
            await asyncio.shield(change)
            self._in_force = settings
        except asyncio.CancelledError:
            # Its holder died, but a change goes on to its end; until then nobody else has a turn.
            await asyncio.wait({change})
            if change.exception() is None:
                self._in_force = settings
            raise
