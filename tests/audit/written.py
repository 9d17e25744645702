"""The stream that the objects of a generated journal are written to."""

from __future__ import annotations

import json
from typing import Any, Self

from raykueue.model.events import Event, EventType, Marker, Record

EPOCH = 1_790_000_000 * 10**9
NAMESPACE = "team-ns"
Json = dict[str, Any]


def quantity(value: float | str) -> str:
    return value if isinstance(value, str) else f"{round(value * 1000)}m"


class Writer:
    """Writes objects one after another, each with the next revision, at the time of its clock."""

    def __init__(self, version: str = "v1beta2") -> None:
        self.version = version
        self.records: list[Record] = []
        self.rev = 100
        self.now = EPOCH
        self.uids = 0

    def at(self, seconds: float) -> Self:
        self.now = EPOCH + round(seconds * 1e9)
        return self

    def uid(self, prefix: str) -> str:
        self.uids += 1
        return f"{prefix}-{self.uids:04}"

    def emit(self, kind: str, obj: Json, type_: EventType = "MODIFIED", arrives: float = 0.0) -> Event:
        self.rev += 1
        shown = json.loads(json.dumps(obj))  # three times as fast as copy.deepcopy
        shown["metadata"]["resourceVersion"] = str(self.rev)
        event = Event(kind, type_, self.rev, self.now + round(arrives * 1e9), shown)
        self.records.append(event)
        return event

    def marker(self, what: str) -> None:
        self.records.append(Marker(what, self.now))
