"""A test process's view of the recorder: events of its scopes as they arrive, barriers, judgements."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from raykueue.errors import InfraError, RecorderError
from raykueue.model.events import Event, Moment
from raykueue.model.findings import Finding
from raykueue.run.answers import Judgement, finding_from_json
from raykueue.run.feed import Feed
from raykueue.run.recorder.judging import JUDGE_S
from raykueue.run.recorder.launch import log_tail
from raykueue.run.recorder.scopes import ScopeNames
from raykueue.run.wire import Connection, Message

_MARGIN_S = 30.0
"""Beyond a judgement's deadline: its last barrier, on a busy machine."""


class Recording:
    """One connection to the recorder; closing it closes its scopes. For any number of threads.

    Every method raises RecorderError if the recorder is gone or says that the record has a hole, and UsageError for
    a scope that it does not know.
    """

    def __init__(self, socket_path: Path) -> None:
        """Connects.

        Raises:
            RecorderError: nobody listens there.
        """
        self._lock = threading.Lock()
        self._feeds: dict[str, Feed] = {}
        self._given_up: InfraError | None = None
        self._connection = Connection(
            socket_path,
            on_push=self._pushed,
            on_lost=self._lost,
            error=RecorderError,
            explain=lambda: log_tail(socket_path.parent),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disconnect()

    def open(self, scope: ScopeNames) -> Feed:
        """Opens a scope. Its feed already has what was recorded of these names before."""
        feed = Feed(scope)
        with self._lock:
            self._feeds[scope.name] = feed  # before asking: events may come before the answer
            if self._given_up is not None:
                feed.end(self._given_up)
        try:
            self._connection.call("open", scope={name: getattr(scope, name) for name in ScopeNames.__slots__})
        except BaseException:
            with self._lock:
                del self._feeds[scope.name]
            raise
        return feed

    def mark(self, what: str, **about: Any) -> None:
        """Writes a marker into the journal, now."""
        self._connection.call("mark", what=what, about=about)

    def barrier(self) -> Moment:
        """Waits until everything that was written before this call is recorded; returns when that was."""
        self._go_on()
        answer = self._connection.call("barrier")
        return Moment(answer["rev"], answer["t"])

    def judge(self, scope: str, deadline_s: float = JUDGE_S) -> Judgement:
        """Waits until nothing can fire any more in that scope, at most `deadline_s`, and returns what did."""
        self._go_on()
        return Judgement.from_json(
            self._connection.call("judge", timeout_s=deadline_s + _MARGIN_S, scope=scope, deadline_s=deadline_s)
        )

    def slice(self, scope: str, path: Path) -> None:
        """Saves the part of the journal that concerns the scope, as a compressed journal at `path` (.jsonl.gz)."""
        self._connection.call("slice", scope=scope, path=str(path.absolute()))

    def close(self, scope: str) -> None:
        """Closes a scope: its feed gets nothing any more, its findings are forgotten."""
        self._connection.call("close", scope=scope)
        with self._lock:
            self._feeds.pop(scope, None)

    def unscoped(self) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
        """Findings that belong to no scope that ever was open, and problems of the whole record."""
        answer = self._connection.call("unscoped")
        return tuple(finding_from_json(one) for one in answer["findings"]), tuple(answer["problems"])

    def stats(self) -> dict[str, Any]:
        """How the recorder is doing (`raykueue.run.recorder.stats`)."""
        return self._connection.call("stats")

    def give_up(self, why: InfraError) -> None:
        """The run can't go on: whoever waits, or begins to, gets this error. What was recorded can still be saved."""
        with self._lock:
            self._given_up = why
            feeds = list(self._feeds.values())
        for feed in feeds:
            feed.end(why)

    def disconnect(self) -> None:
        """Ends the connection, and with it every scope that is still open."""
        self._connection.close()

    def _go_on(self) -> None:
        if self._given_up is not None:
            raise self._given_up

    def _pushed(self, message: Message) -> None:
        with self._lock:
            feed = self._feeds.get(message["scope"])
        if feed is not None:
            record = message["record"]
            del record["record"]
            feed.arrive(Event(**record))

    def _lost(self) -> None:
        with self._lock:
            feeds = list(self._feeds.values())
        for feed in feeds:
            feed.end(self._connection.failure("the connection is lost, so events may be missing"))
