"""How a journal is written down: one JSON object per line, the first one a header. Pure: text in, records out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any

from raykueue.model.events import Barrier, Event, Gap, Header, Listed, Marker, Record

_TAGS: dict[str, type[Record]] = {
    "header": Header,
    "event": Event,
    "listed": Listed,
    "gap": Gap,
    "marker": Marker,
    "barrier": Barrier,
}
_TAG_OF = {cls: tag for tag, cls in _TAGS.items()}


SLICE = "slice"
"""What the last record of a part of a journal is: a marker about the scope that it is of, and what was judged there:
{"scope": {"name", "namespaces", …}, "judged": null | {"rev", "arrived", "findings", "problems"}}. Without it, the end
of the part is missing."""


class JournalError(ValueError):
    """A line is not a journal record; the message has its number."""


def encode(record: Record) -> str:
    """One line of JSON, without the line break."""
    body = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    return json.dumps({"record": _TAG_OF[type(record)], **body}, separators=(",", ":"))


def decode(line: str) -> Record:
    """The record of one line.

    Raises:
        JournalError: the line is no JSON object, or no record this version knows.
    """
    try:
        body: dict[str, Any] = json.loads(line)
        return _TAGS[body.pop("record")](**body)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise JournalError(f"not a journal record: {line[:80]!r} ({error})") from error


def decode_all(lines: Iterable[str]) -> Iterator[Record]:
    """All records of a journal, in order of arrival. A last line that was cut short is left out."""
    pending: tuple[int, str] | None = None
    for number, line in enumerate(lines, 1):
        if pending is not None:
            yield _decode_numbered(*pending)
        pending = (number, line)
    if pending is not None and pending[1].endswith("\n"):
        yield _decode_numbered(*pending)


def _decode_numbered(number: int, line: str) -> Record:
    try:
        return decode(line)
    except JournalError as error:
        raise JournalError(f"line {number}: {error}") from error
