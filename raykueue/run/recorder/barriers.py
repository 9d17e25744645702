"""Proof that the streams are complete: per kind a write, or a list, and the wait until its stream has caught up."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

from raykueue.errors import RecorderError
from raykueue.kube.session import NO_ANSWER, ApiRefused
from raykueue.model.events import Barrier, Event

SPACING_S = 0.1
"""At least from the start of one barrier to the start of the next."""
DUTY = 0.25
"""Part of the time that barriers may take: each costs the cluster about a tenth of a second of CPU."""
RETRY_S = 0.1

T = TypeVar("T")


class Proofs(Protocol):
    """What writes and lists (`Sentinels`); both raise ApiRefused or one of NO_ANSWER."""

    kinds: tuple[str, ...]
    """That are proven by a write; all others are by a list."""

    async def touch(self, kind: str, token: str) -> int: ...
    async def present(self, kind: str) -> tuple[int, dict[str, int]]: ...


class Stream(Protocol):
    """What a barrier must know of a stream (`KindStream`)."""

    rev: int
    ended: str
    live: dict[str, Event]


class Barriers:
    """Requests at the same time share one barrier: one that has not written yet serves all who wait for it."""

    def __init__(
        self, proofs: Proofs, streams: Mapping[str, Stream], passed: Callable[[Barrier], None], timeout_s: float
    ) -> None:
        """`passed` is called for each barrier before those who asked for it get it."""
        self._proofs = proofs
        self._streams = streams
        self._passed = passed
        self._timeout_s = timeout_s
        self._next: asyncio.Task[Barrier] | None = None
        self._running: asyncio.Task[Barrier] | None = None
        self._started = 0.0
        self._spacing_s = SPACING_S
        self._waiting: dict[str, tuple[Callable[[], bool], asyncio.Event]] = {}
        # Two recorders may use the same namespace one after the other: an equal annotation would be no write.
        self._token = str(time.time_ns())
        self.count = 0
        self.durations_ms: deque[float] = deque(maxlen=10_000)
        self.echoes_ms: deque[float] = deque(maxlen=10_000)
        """From the answer of the last write to its echo, the slowest kind of each barrier."""

    async def barrier(self) -> Barrier:
        """Everything written before this call is in the journal, and folded, when it returns.

        Raises:
            RecorderError: a write failed or its echo did not come in time; the message names the kinds.
        """
        if self._next is None:
            self._next = asyncio.create_task(self._run_after(self._running))
        return await asyncio.shield(self._next)

    def advanced(self, kind: str, _rev: int) -> None:
        """A stream has moved on."""
        if kind in self._waiting:
            caught_up, event = self._waiting[kind]
            if caught_up():
                event.set()

    async def _run_after(self, running: asyncio.Task[Barrier] | None) -> Barrier:
        if running is not None:
            await asyncio.wait([running])
        await asyncio.sleep(max(0.0, self._started + self._spacing_s - time.monotonic()))
        # From here on the proofs are under way: who asks now may have written later than them.
        self._running, self._next = self._next, None
        self._started = time.monotonic()
        self.count += 1
        token = f"{self._token}-{self.count}"
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        try:
            # Every kind's failure is wanted, so none cancels the others.
            proven = await asyncio.gather(
                *(self._prove(kind, stream, token, deadline) for kind, stream in self._streams.items()),
                return_exceptions=True,
            )
        finally:
            self._waiting.clear()
        took_s = time.monotonic() - self._started
        self._spacing_s = max(SPACING_S, took_s / DUTY)
        failures = [one for one in proven if isinstance(one, BaseException)]
        for failure in failures:
            if not isinstance(failure, RecorderError):
                raise failure
        if failures:
            raise RecorderError(f"barrier {self.count}: " + "; ".join(str(failure) for failure in failures))
        revs = [one for one in proven if isinstance(one, tuple)]
        barrier = Barrier(min(rev for rev, _ in revs), time.time_ns())
        self.durations_ms.append(took_s * 1e3)
        self.echoes_ms.append(max(wait for _, wait in revs))
        self._passed(barrier)
        return barrier

    async def _prove(self, kind: str, stream: Stream, token: str, deadline: float) -> tuple[int, float]:
        """Up to which revision the stream is complete, and how many ms after the answer it had caught up."""
        if kind in self._proofs.kinds:
            rev = await self._ask(kind, stream, deadline, lambda: self._proofs.touch(kind, token))
            return rev, await self._catch_up(kind, stream, deadline, rev, lambda: stream.rev >= rev)
        rev, present = await self._ask(kind, stream, deadline, lambda: self._proofs.present(kind))
        newest = max(present.values(), default=0)

        def caught_up() -> bool:
            gone = (event for uid, event in stream.live.items() if uid not in present)
            return stream.rev >= newest and all(event.rev > rev for event in gone)

        return rev, await self._catch_up(kind, stream, deadline, rev, caught_up)

    async def _catch_up(
        self, kind: str, stream: Stream, deadline: float, rev: int, caught_up: Callable[[], bool]
    ) -> float:
        began = time.monotonic()
        if not caught_up():
            event = asyncio.Event()
            self._waiting[kind] = caught_up, event
            try:
                async with asyncio.timeout_at(deadline):
                    await event.wait()
            except TimeoutError:
                why = stream.ended or f"its stream is at {stream.rev}"
                raise RecorderError(
                    f"{kind}: revision {rev} did not arrive within {self._timeout_s:g} s, {why}"
                ) from None
        return (time.monotonic() - began) * 1e3

    async def _ask(self, kind: str, stream: Stream, deadline: float, ask: Callable[[], Awaitable[T]]) -> T:
        """Again and again while the server, or a webhook that it asks, is on its way back."""
        last = "no answer"
        try:
            async with asyncio.timeout_at(deadline):
                while not stream.ended:
                    try:
                        return await ask()
                    except ApiRefused as refused:
                        if refused.status < 500 and refused.status not in (409, 429):
                            raise RecorderError(f"{kind}: no proof that its stream is complete: {refused}") from refused
                        last = str(refused)
                    except NO_ANSWER as failure:
                        last = repr(failure)
                    await asyncio.sleep(RETRY_S)
        except TimeoutError:
            raise RecorderError(
                f"{kind}: no proof that its stream is complete, for {self._timeout_s:g} s: {last}"
            ) from None
        raise RecorderError(stream.ended)
