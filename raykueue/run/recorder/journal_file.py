"""The journal on disk, and an index by scope key so that a scope's part is found without reading the rest."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

from raykueue.model.events import Record
from raykueue.model.journal import encode
from raykueue.run import journals
from raykueue.run.recorder.scopes import Key


class JournalFile:
    """Appends records; remembers for each key at which offsets its events are, and where the records of all are.

    Lines are buffered; `flush` makes them safe from the death of this process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb", buffering=1 << 20)
        self._size = 0
        self._offsets: dict[Key | None, array[int]] = {}

    @property
    def bytes(self) -> int:
        """Written so far."""
        return self._size

    def append(self, record: Record, key: Key | None = None) -> str:
        """Writes a record; without a key it concerns every scope. Returns its line."""
        line = encode(record)
        offsets = self._offsets.get(key)
        if offsets is None:
            offsets = self._offsets[key] = array("Q")
        offsets.append(self._size)
        self._size += self._file.write(line.encode() + b"\n")
        return line

    def lines(self, keys: Iterable[Key]) -> list[str]:
        """The events of these keys, in order of arrival."""
        self.flush()
        return list(_read(self._path, sorted(offset for key in set(keys) for offset in self._offsets.get(key, ()))))

    def offsets(self, keys: Iterable[Key], since: int) -> list[int]:
        """Where the part of the journal that concerns one scope is: everything of its keys, every record that is no
        event, and of every Node its last state at offset `since` and what came after."""
        self.flush()
        chosen = set(self._offsets.get(None, ()))
        for key in keys:
            chosen.update(self._offsets.get(key, ()))
        for any_key, offsets in self._offsets.items():
            if any_key is not None and any_key[0] == "Node":
                before = [offset for offset in offsets if offset < since]
                chosen.update(before[-1:], (offset for offset in offsets if offset >= since))
        return sorted(chosen)

    def save(self, offsets: list[int], path: Path, end: Record) -> None:
        """Writes these records, and one more, as a journal of its own; reads only what was flushed, so any thread may
        call it."""
        journals.save_lines(itertools.chain(_read(self._path, offsets), [encode(end)]), path)

    def flush(self) -> None:
        """Everything appended so far can be read by others."""
        self._file.flush()

    def close(self) -> None:
        """Flushes and closes."""
        self._file.close()


def _read(path: Path, offsets: Iterable[int]) -> Iterator[str]:
    with path.open("rb") as file:
        for offset in offsets:
            file.seek(offset)
            yield file.readline().decode().rstrip("\n")
