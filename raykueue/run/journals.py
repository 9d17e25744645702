"""Journals as files: one JSON record per line, plain (`.jsonl`) or compressed (`.jsonl.gz`)."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TextIO

from raykueue.model.events import Record
from raykueue.model.journal import decode_all, encode


def save(records: Iterable[Record], path: Path) -> None:
    """Writes a journal, compressed if the name ends in .gz; the folder is created."""
    save_lines((encode(record) for record in records), path)


def save_lines(lines: Iterable[str], path: Path) -> None:
    """Writes records that are already encoded, one per line; the file appears only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}")
    with _open(unfinished, "wt", compressed=path.suffix == ".gz") as file:
        file.writelines(line.rstrip("\n") + "\n" for line in lines)
    unfinished.replace(path)


def load(path: Path) -> list[Record]:
    """All records, in order of arrival; a last line that was cut short is left out.

    Raises:
        JournalError: a line is no journal record.
        OSError: the file can't be read.
    """
    with _open(path, "rt", compressed=path.suffix == ".gz") as file:
        return list(decode_all(file))


def _open(path: Path, mode: Literal["rt", "wt"], *, compressed: bool) -> TextIO:
    if compressed:
        # gzip's own default, 9, takes much longer for hardly less.
        return gzip.open(path, mode, compresslevel=6, encoding="utf-8")
    return path.open(mode, encoding="utf-8")
