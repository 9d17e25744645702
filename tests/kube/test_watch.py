from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from raykueue.kube import watch
from raykueue.kube.session import ApiRefused, ApiSession
from raykueue.kube.watch import KindStream, lines
from raykueue.model.events import Event, Gap, Listed
from raykueue.model.kinds import BY_NAME
from tests.kube.fake_api import FakeApi


class Watched:
    """A stream of one kind, and everything that it said."""

    def __init__(self, session: ApiSession, kind: str) -> None:
        self.records: list[Event | Listed | Gap] = []
        self.troubles: list[str] = []
        self._moved = asyncio.Event()
        table = BY_NAME[kind]
        self.stream = KindStream(session, table, table.versions[0], self._take, self._advanced, self._trouble)

    def _take(self, record: Event | Listed | Gap) -> None:
        self.records.append(record)

    def _advanced(self, _kind: str, _rev: int) -> None:
        self._moved.set()

    def _trouble(self, text: str) -> None:
        self.troubles.append(text)
        self._moved.set()

    async def reaches(self, rev: int) -> None:
        async with asyncio.timeout(5):
            while self.stream.rev < rev:
                self._moved.clear()
                await self._moved.wait()

    def told(self) -> list[tuple[Any, ...]]:
        return [
            (record.type, record.object["metadata"]["name"], record.listed)
            if isinstance(record, Event)
            else (type(record).__name__,)
            for record in self.records
        ]


@asynccontextmanager
async def watched(api: FakeApi, kind: str = "Pod") -> AsyncIterator[Watched]:
    async with api, ApiSession(api.access) as session:
        seen = Watched(session, kind)
        await seen.stream.start()
        task = asyncio.create_task(seen.stream.watch())
        try:
            yield seen
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], object]) -> None:
    """For states of the fake server, which tells nobody about them."""
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await body()

    asyncio.run(main())


def test_a_list_is_followed_by_every_later_event_in_order() -> None:
    async def body() -> None:
        api = FakeApi()
        api.put("Pod", "a", "ns")
        async with watched(api) as seen:
            api.put("Pod", "b", "ns")
            api.put("Pod", "a", "ns", spec={"x": 1})
            await seen.reaches(api.remove("Pod", "b", "ns"))
            assert seen.told() == [
                ("ADDED", "a", True),
                ("Listed",),
                ("ADDED", "b", False),
                ("MODIFIED", "a", False),
                ("DELETED", "b", False),
            ]
            assert seen.troubles == []

    run(body)


def test_listed_objects_have_kind_and_version_and_nothing_has_managed_fields() -> None:
    async def body() -> None:
        api = FakeApi()
        api.put("Job", "a", "ns")
        async with watched(api, "Job") as seen:
            await seen.reaches(api.put("Job", "b", "ns"))
            listed, added = (record for record in seen.records if isinstance(record, Event))
            assert (listed.object["apiVersion"], listed.object["kind"]) == ("batch/v1", "Job")
            assert "managedFields" not in listed.object["metadata"]
            assert "managedFields" not in added.object["metadata"]

    run(body)


def test_a_list_in_pages_is_one_list_at_one_revision() -> None:
    async def body() -> None:
        api = FakeApi(page=3)
        for number in range(10):
            api.put("Pod", f"p{number}", "ns")
        async with watched(api) as seen:
            assert [name for _, name, _ in seen.told()[:-1]] == [f"p{number}" for number in range(10)]
            assert seen.records[-1] == Listed("Pod", api.rev, seen.records[-1].arrived)
            assert api.requests["LIST", "Pod"] == 4

    run(body)


def test_a_page_that_expired_starts_the_list_again() -> None:
    class CompactsOnce(FakeApi):
        compacted = False

        def _list(self, request: web.Request, kind: str) -> web.StreamResponse:
            answer = super()._list(request, kind)
            if not self.compacted:
                self.compacted = True
                self.put("Pod", "late", "ns")
                self.compact("Pod")
            return answer

    async def body() -> None:
        api = CompactsOnce(page=1)
        for number in range(3):
            api.put("Pod", f"p{number}", "ns")
        async with watched(api) as seen:
            assert [name for _, name, _ in seen.told()[:-1]] == ["p0", "p1", "p2", "late"]

    run(body)


def test_a_bookmark_moves_the_watermark_without_a_record() -> None:
    async def body() -> None:
        api = FakeApi()
        async with watched(api) as seen:
            await until(lambda: api.watching("Pod"))
            rev = api.put("Job", "other", "ns")
            api.bookmark("Pod")
            await seen.reaches(rev)
            assert seen.told() == [("Listed",)]

    run(body)


def test_a_broken_watch_goes_on_where_it_was_and_loses_and_repeats_nothing() -> None:
    async def body() -> None:
        api = FakeApi()
        async with watched(api) as seen:
            for number in range(5):
                api.put("Pod", f"p{number}", "ns")
                await until(lambda: api.watching("Pod"))
                api.break_watches("Pod")
            await seen.reaches(api.put("Pod", "last", "ns"))
            assert [name for _, name, _ in seen.told()[1:]] == ["p0", "p1", "p2", "p3", "p4", "last"]
            assert seen.stream.reconnects >= 1
            assert api.requests["LIST", "Pod"] == 1

    run(body)


@pytest.mark.parametrize("as_event", [True, False], ids=["ERROR event", "HTTP status"])
def test_after_a_410_a_gap_is_written_and_what_changed_is_listed(as_event: bool) -> None:
    async def body() -> None:
        api = FakeApi()
        for name in ("same", "changed", "gone"):
            api.put("Pod", name, "ns")
        async with watched(api) as seen:
            before = api.rev
            await until(lambda: api.watching("Pod"))
            api.held.add("Pod")
            api.put("Pod", "changed", "ns", spec={"x": 1})
            api.put("Pod", "new", "ns")
            last = api.remove("Pod", "gone", "ns")
            api.compact("Pod")
            if as_event:
                # The held events are never delivered: the watch only learns that it is too late.
                for queue in api._watchers["Pod"]:
                    while not queue.empty():
                        queue.get_nowait()
                api.held.discard("Pod")
                api.expire_watches("Pod")
            else:
                api.break_watches("Pod")
            await seen.reaches(last)
            gap = seen.records[4]
            assert isinstance(gap, Gap)
            assert gap == Gap("Pod", before, last, gap.arrived, gap.reason)
            assert "1 objects vanished" in gap.reason
            assert seen.told()[4:] == [
                ("Gap",),
                ("ADDED", "changed", True),
                ("ADDED", "new", True),
                ("DELETED", "gone", False),
                ("Listed",),
            ]
            deleted = seen.records[7]
            assert isinstance(deleted, Event)
            assert deleted.rev == last
            assert seen.stream.gaps == 1

    run(body)


def test_an_event_out_of_order_is_told() -> None:
    async def body() -> None:
        api = FakeApi()
        async with watched(api) as seen:
            await seen.reaches(api.put("Pod", "a", "ns"))
            api.rev -= 1
            api.put("Pod", "b", "ns")
            await until(lambda: seen.troubles)
            assert "unordered" in seen.troubles[0]

    run(body)


def test_a_refusal_for_a_moment_is_survived() -> None:
    async def body() -> None:
        api = FakeApi()
        async with watched(api) as seen:
            await until(lambda: api.watching("Pod"))
            api.refuse["WATCH", "Pod"] = 404
            api.break_watches("Pod")
            await until(lambda: api.requests["WATCH", "Pod"] >= 3)
            api.refuse.clear()
            await seen.reaches(api.put("Pod", "a", "ns"))
            assert seen.stream.ended == ""
            assert seen.troubles == []

    run(body)


def test_a_refusal_that_stays_ends_the_stream_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "REFUSED_S", 0.05)

    async def body() -> None:
        api = FakeApi()
        api.refuse["WATCH", "Pod"] = 403
        async with watched(api) as seen:
            await until(lambda: seen.stream.ended)
            assert seen.troubles == [seen.stream.ended]
            assert "Pod" in seen.stream.ended
            assert "403" in seen.stream.ended

    run(body)


def test_a_first_list_that_is_refused_raises() -> None:
    async def body() -> None:
        api = FakeApi()
        api.refuse["LIST", "Pod"] = 403
        async with api, ApiSession(api.access) as session:
            with pytest.raises(ApiRefused, match="403 refused by the test"):
                await Watched(session, "Pod").stream.start()

    run(body)


def test_lines_are_whole_however_they_are_cut() -> None:
    long = b"x" * 3_000_000

    async def chunks() -> AsyncIterator[bytes]:
        for chunk in (b"a", b"b\nc\n\nd", long[:1_000_000], long[1_000_000:], b"\nrest"):
            yield chunk

    async def body() -> None:
        before = time.time_ns()
        found = [(line, arrived) async for line, arrived in lines(chunks())]
        assert [line for line, _ in found] == [b"ab", b"c", b"d" + long]
        assert all(before <= arrived <= time.time_ns() for _, arrived in found)

    run(body)
