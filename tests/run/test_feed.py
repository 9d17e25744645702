from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from raykueue.errors import RecorderError
from raykueue.model.events import Event, EventType
from raykueue.run.feed import Feed
from raykueue.run.recorder.scopes import ScopeNames


def event(name: str, rev: int, what: EventType = "MODIFIED", state: str = "") -> Event:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    return Event("RayJob", what, rev, rev, {"metadata": metadata, "state": state})


def state(feed: Feed) -> str | None:
    found = feed.object("RayJob", "ns", "job")
    return None if found is None else str(found["state"])


class Waiting:
    """A thread that waits; `outcome` is what it got."""

    def __init__(self, feed: Feed, predicate: Callable[[Feed], Any], within_s: float = 10) -> None:
        self.outcome: Any = None
        self._looked = threading.Event()

        def look(feed: Feed) -> Any:
            self._looked.set()
            return predicate(feed)

        def run() -> None:
            try:
                self.outcome = feed.wait(look, time.monotonic() + within_s)
            except Exception as error:  # noqa: BLE001 - a test asks what it was
                self.outcome = error

        self._thread = threading.Thread(target=run)
        self._thread.start()
        assert self._looked.wait(5)

    def result(self) -> Any:
        self._thread.join(10)
        assert not self._thread.is_alive()
        return self.outcome


def test_a_wait_returns_at_once_what_is_already_true() -> None:
    feed = Feed(ScopeNames("s"))
    feed.arrive(event("job", 1, state="Running"))
    assert feed.wait(state, time.monotonic()) == "Running"


def test_a_wait_sees_a_state_that_lasted_for_one_event_only() -> None:
    feed = Feed(ScopeNames("s"))
    waiting = Waiting(feed, lambda feed: True if state(feed) == "Short" else None)
    for rev, each in enumerate(("New", "Short", "Long")):
        feed.arrive(event("job", rev, state=each))
    assert waiting.result() is True


def has(count: int) -> Callable[[Feed], int | None]:
    """What waits for so many events."""
    return lambda feed: count if len(feed.events) == count else None


def test_every_wait_gets_its_own_answer() -> None:
    feed = Feed(ScopeNames("s"))
    waits = [Waiting(feed, has(count)) for count in (1, 2, 3)]
    for rev in range(3):
        feed.arrive(event("job", rev))
    assert [wait.result() for wait in waits] == [1, 2, 3]


def test_what_a_predicate_raises_is_raised_by_the_wait_and_others_go_on() -> None:
    feed = Feed(ScopeNames("s"))

    def terminal(feed: Feed) -> None:
        if state(feed) == "Failed":
            raise AssertionError("it failed")

    failing = Waiting(feed, terminal)
    other = Waiting(feed, lambda feed: state(feed) if state(feed) == "Gone" else None)
    feed.arrive(event("job", 1, state="Failed"))
    feed.arrive(event("job", 2, state="Gone"))
    assert isinstance(failing.result(), AssertionError)
    assert other.result() == "Gone"


def test_a_deadline_ends_a_wait() -> None:
    feed = Feed(ScopeNames("s"))
    with pytest.raises(TimeoutError, match="scope s"):
        feed.wait(lambda _: None, time.monotonic() + 0.01)
    feed.arrive(event("job", 1))


def test_the_end_of_the_connection_ends_waits_that_run_and_waits_that_come() -> None:
    feed = Feed(ScopeNames("s"))
    waiting = Waiting(feed, lambda _: None)
    feed.end(RecorderError("gone"))
    assert isinstance(waiting.result(), RecorderError)
    with pytest.raises(RecorderError, match="gone"):
        feed.wait(lambda _: None, time.monotonic() + 10)


def test_objects_are_as_last_seen_and_history_is_by_uid() -> None:
    feed = Feed(ScopeNames("s"))
    first, second, third = event("a", 1, "ADDED"), event("b", 2, "ADDED"), event("a", 3, state="x")
    for each in (first, second, third):
        feed.arrive(each)
    assert feed.object("RayJob", "ns", "a") == third.object
    assert feed.objects("RayJob") == [third.object, second.object]
    assert feed.history("RayJob", "uid-a") == [first, third]
    feed.arrive(event("a", 4, "DELETED"))
    assert feed.object("RayJob", "ns", "a") is None
    assert feed.objects("RayJob") == [second.object]
    assert feed.object("RayJob", "ns", "never") is None
