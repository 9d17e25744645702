"""The files of a report: their names, and how they are written whole and read back."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from raykueue.report.errors import ReportError

PLAN, RECORDS, RUN, SUMMARY, JUNIT = "plan.json", "records.jsonl", "run.json", "summary.md", "junit.xml"
LATEST = "latest"
"""A symbolic link beside the reports, to the last one that was finished."""


def sha256(path: Path) -> str:
    """The digest of a file, in hexadecimal. Raises ReportError if it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ReportError(f"{path}: it can't be read ({error})") from error


def read(path: Path) -> str:
    """The text of a file. Raises ReportError if it is missing, unreadable, or not UTF-8."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError as error:
        raise ReportError(f"{path}: the file is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(f"{path}: it can't be read ({error})") from error


def write(path: Path, text: str) -> None:
    """Writes all of it or nothing: a reader never meets half a file. Raises ReportError if the disk refuses."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ReportError(f"{path}: it can't be written ({error})") from error


def link(path: Path, target: str) -> None:
    """Makes `path` a relative symbolic link to its neighbour `target`, in one step. Raises ReportError."""
    temporary = path.with_name(f".{LATEST}-{target}")
    try:
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target)
        temporary.replace(path)
    except OSError as error:
        raise ReportError(f"{path}: can't be made to point at {target} ({error})") from error
