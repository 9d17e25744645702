"""Ranges of versions. Pure."""

from __future__ import annotations

import functools
import math
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


def outside(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Every version that is in none of them. No ranges are no versions here, and in `both`."""
    left: tuple[Range, ...] = (Range(),)
    for one in ranges:
        below = (Range(before=one.since),) if one.since else ()
        above = (Range(since=one.before),) if one.before else ()
        left = both(left, (*below, *above))
    return left


def both(some: tuple[Range, ...], others: tuple[Range, ...]) -> tuple[Range, ...]:
    """Every version that is in one of `some` and in one of `others`."""
    found = [
        Range(max(one.since, other.since, key=_begin), min(one.before, other.before, key=_end))
        for one in some
        for other in others
    ]
    return tuple(one for one in found if _begin(one.since) < _end(one.before))


def ends(ranges: tuple[Range, ...]) -> tuple[str, ...]:
    """The first version after each of them, of those that are in none: where what has these ranges first stops."""
    firsts = dict.fromkeys(one.before.partition("-")[0] for one in ranges if one.before)
    return tuple(sorted((first for first in firsts if not any(first in one for one in ranges)), key=_parse))


def _begin(since: str) -> tuple[int, int, int, int]:
    return _parse(since) if since else (-1, 0, 0, 0)


def _end(before: str) -> tuple[float, int, int, int]:
    return _parse(before) if before else (math.inf, 0, 0, 0)


@functools.cache
def _parse(version: str) -> tuple[int, int, int, int]:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"not a version: {version!r}; write it as 0.19.2")
    major, minor, patch, before_release = match.groups()
    return int(major), int(minor), int(patch or 0), -1 if before_release else 0
