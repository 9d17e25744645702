"""Ranges of versions. Pure."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(-[0-9A-Za-z.-]+)?")


@dataclass(frozen=True, slots=True)
class Range:
    """From a version on, before another: half open. An empty end is open."""

    since: str = ""
    before: str = ""

    def __contains__(self, version: object) -> bool:
        here = _parse(str(version))
        return (not self.since or _parse(self.since) <= here) and (not self.before or here < _parse(self.before))

    def __str__(self) -> str:
        parts = [f">= {self.since}" if self.since else "", f"< {self.before}" if self.before else ""]
        return " and ".join(p for p in parts if p) or "any version"


def within(version: str, ranges: tuple[Range, ...]) -> bool:
    """The version is in one of the ranges; no ranges are no restriction."""
    return not ranges or any(version in one for one in ranges)


def since(*versions: str) -> tuple[Range, ...]:
    """From each of these on: all but the last end with their minor, as fixes do that were picked into older ones."""
    ends = [f"{int(v.split('.')[0])}.{int(v.split('.')[1]) + 1}.0-0" for v in versions[:-1]]
    return tuple(Range(start, end) for start, end in zip(versions, [*ends, ""], strict=True))


@functools.cache
def _parse(version: str) -> tuple[int, int, int, int]:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"not a version: {version!r}; write it as 0.19.2")
    major, minor, patch, before_release = match.groups()
    return int(major), int(minor), int(patch or 0), -1 if before_release else 0
