"""The events of one scope, in a test process: kept in order, and waited for without polling."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from raykueue.errors import InfraError
from raykueue.model.events import Event, Object
from raykueue.run.recorder.scopes import ScopeNames

T = TypeVar("T")


class _Wait:
    """One thread that waits."""

    def __init__(self, predicate: Callable[[Feed], Any]) -> None:
        self.predicate = predicate
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def look(self, feed: Feed) -> bool:
        """Whether the wait is over."""
        try:
            self.result = self.predicate(feed)
        except Exception as error:  # noqa: BLE001 - it is the waiting thread's, and is raised there
            self.error = error
        if self.result is None and self.error is None:
            return False
        self.done.set()
        return True


class Feed:
    """All events of one scope so far, in order of arrival; for any number of threads."""

    def __init__(self, scope: ScopeNames) -> None:
        self.scope = scope
        self._lock = threading.RLock()
        self._events: list[Event] = []
        self._latest: dict[tuple[str, str, str], Event] = {}
        self._history: dict[tuple[str, str], list[Event]] = {}
        self._waits: list[_Wait] = []
        self._ended: InfraError | None = None

    @property
    def events(self) -> list[Event]:
        """A copy."""
        with self._lock:
            return list(self._events)

    def object(self, kind: str, namespace: str, name: str) -> Object | None:
        """As last seen; None if it was never seen or is deleted. Without a namespace it is ""."""
        with self._lock:
            event = self._latest.get((kind, namespace, name))
        return None if event is None or event.type == "DELETED" else event.object

    def objects(self, kind: str) -> list[Object]:
        """All that exist of a kind, as last seen, in order of first arrival."""
        with self._lock:
            return [event.object for key, event in self._latest.items() if key[0] == kind and event.type != "DELETED"]

    def history(self, kind: str, uid: str) -> list[Event]:
        """Every event of one object."""
        with self._lock:
            return list(self._history.get((kind, uid), ()))

    def wait(self, predicate: Callable[[Feed], T | None], deadline: float) -> T:
        """Waits until `predicate` returns something other than None, and returns that.

        It is asked once at first and then after each single event, even if several arrive together, so it sees every
        state. It runs in the thread that reads events: it must not block, nor talk to the recorder. What it raises is
        raised here.

        Args:
            predicate: looks at this feed.
            deadline: by `time.monotonic()`.

        Raises:
            TimeoutError: the deadline passed first.
            RecorderError: the recorder is gone, so waiting is useless.
        """
        wait = _Wait(predicate)
        with self._lock:
            if not wait.look(self):
                if self._ended is not None:
                    raise self._ended
                self._waits.append(wait)
        if not wait.done.wait(max(0.0, deadline - time.monotonic())):
            with self._lock:
                if not wait.done.is_set():
                    self._waits.remove(wait)
                    raise TimeoutError(f"scope {self.scope.name}: not seen by the deadline")
        if wait.error is not None:
            raise wait.error
        result: T = wait.result
        return result

    def arrive(self, event: Event) -> None:
        """One more event; called by the connection, in order."""
        metadata = event.object["metadata"]
        key = event.kind, str(metadata.get("namespace") or ""), str(metadata["name"])
        with self._lock:
            self._events.append(event)
            self._latest[key] = event
            self._history.setdefault((event.kind, str(metadata["uid"])), []).append(event)
            self._waits = [wait for wait in self._waits if not wait.look(self)]

    def end(self, why: InfraError) -> None:
        """No more events will come."""
        with self._lock:
            self._ended = why
            for wait in self._waits:
                wait.error = why
                wait.done.set()
            self._waits = []
