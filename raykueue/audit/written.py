"""By when a revision had been written: t*, the smallest arrival time of any event with a revision >= it.

Known as soon as an event arrives: what arrives afterwards arrives later. The recorder writes it into the journal, so
that a part of a journal tells the same times as the whole.
"""

from __future__ import annotations

from bisect import bisect_left


class WrittenBy:
    """t* of every revision that is not yet judged. Events are noted in order of arrival."""

    def __init__(self) -> None:
        self._revs: list[int] = []
        self._arrivals: list[int] = []
        self.highest = 0
        """Revision of any event so far."""

    def note(self, rev: int, arrived: int) -> int:
        """An event arrived; returns t* of its revision."""
        if rev > self.highest:
            self.highest = rev
            self._revs.append(rev)
            self._arrivals.append(arrived)
        return self.of(rev, arrived)

    def of(self, rev: int, otherwise: int) -> int:
        """t* of a revision; `otherwise` if nothing proves yet that it was written."""
        index = bisect_left(self._revs, rev)
        return min(self._arrivals[index], otherwise) if index < len(self._revs) else otherwise

    def judged(self, rev: int) -> None:
        """Nobody asks about revisions up to this one any more."""
        index = bisect_left(self._revs, rev + 1)
        del self._revs[:index]
        del self._arrivals[:index]
