"""Proof that the streams are complete: one write per kind, and the wait for its echo in that kind's stream."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from raykueue.errors import RecorderError
from raykueue.kube.session import NO_ANSWER, ApiRefused
from raykueue.model.events import Barrier

SPACING_S = 0.1
"""From the start of one barrier to the start of the next: each costs one write per kind."""
RETRY_S = 0.1


class Writes(Protocol):
    """What touches the sentinels (`Sentinels`)."""

    kinds: tuple[str, ...]

    async def touch(self, kind: str, token: str) -> int: ...


class Stream(Protocol):
    """What a barrier must know of a stream (`KindStream`)."""

    rev: int
    ended: str


class Barriers:
    """Requests at the same time share one barrier: one that has not written yet serves all who wait for it."""

    def __init__(
        self, sentinels: Writes, streams: Mapping[str, Stream], passed: Callable[[Barrier], None], timeout_s: float
    ) -> None:
        """`passed` is called for each barrier before those who asked for it get it."""
        self._sentinels = sentinels
        self._streams = streams
        self._passed = passed
        self._timeout_s = timeout_s
        self._next: asyncio.Task[Barrier] | None = None
        self._running: asyncio.Task[Barrier] | None = None
        self._started = 0.0
        self._waiting: dict[str, list[tuple[int, asyncio.Event]]] = {}
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

    def advanced(self, kind: str, rev: int) -> None:
        """A stream has seen everything up to `rev`."""
        waiting = self._waiting.get(kind)
        if waiting:
            for wanted, seen in waiting:
                if wanted <= rev:
                    seen.set()

    async def _run_after(self, running: asyncio.Task[Barrier] | None) -> Barrier:
        if running is not None:
            await asyncio.wait([running])
        await asyncio.sleep(max(0.0, self._started + SPACING_S - time.monotonic()))
        # From here on the writes are under way: who asks now may have written later than them.
        self._running, self._next = self._next, None
        self._started = time.monotonic()
        self.count += 1
        token = f"{self._token}-{self.count}"
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        try:
            # Every kind's failure is wanted, so none cancels the others.
            echoed = await asyncio.gather(
                *(self._echo(kind, token, deadline) for kind in self._sentinels.kinds), return_exceptions=True
            )
        finally:
            self._waiting.clear()
        failures = [one for one in echoed if isinstance(one, BaseException)]
        for failure in failures:
            if not isinstance(failure, RecorderError):
                raise failure
        if failures:
            raise RecorderError(f"barrier {self.count}: " + "; ".join(str(failure) for failure in failures))
        revs = [one for one in echoed if isinstance(one, tuple)]
        barrier = Barrier(min(rev for rev, _ in revs), time.time_ns())
        self.durations_ms.append((time.monotonic() - self._started) * 1e3)
        self.echoes_ms.append(max(wait for _, wait in revs))
        self._passed(barrier)
        return barrier

    async def _echo(self, kind: str, token: str, deadline: float) -> tuple[int, float]:
        """The revision of the write, and how many ms later it was seen."""
        stream = self._streams[kind]
        rev = await self._touch(kind, token, stream, deadline)
        written = time.monotonic()
        if stream.rev < rev:
            seen = asyncio.Event()
            self._waiting.setdefault(kind, []).append((rev, seen))
            try:
                async with asyncio.timeout_at(deadline):
                    await seen.wait()
            except TimeoutError:
                why = stream.ended or f"its stream is at {stream.rev}"
                raise RecorderError(
                    f"{kind}: the echo of revision {rev} did not arrive within {self._timeout_s:g} s, {why}"
                ) from None
        return rev, (time.monotonic() - written) * 1e3

    async def _touch(self, kind: str, token: str, stream: Stream, deadline: float) -> int:
        """Writes, again and again while the server, or a webhook that it asks, is on its way back."""
        last = "no answer"
        try:
            async with asyncio.timeout_at(deadline):
                while not stream.ended:
                    try:
                        return await self._sentinels.touch(kind, token)
                    except ApiRefused as refused:
                        if refused.status < 500 and refused.status not in (409, 429):
                            raise RecorderError(f"{kind}: the sentinel can't be written: {refused}") from refused
                        last = str(refused)
                    except NO_ANSWER as failure:
                        last = repr(failure)
                    await asyncio.sleep(RETRY_S)
        except TimeoutError:
            raise RecorderError(f"{kind}: no write to the sentinel within {self._timeout_s:g} s: {last}") from None
        raise RecorderError(stream.ended)
