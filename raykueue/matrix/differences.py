"""What differs between a pair and the default pair: test by test, and in one line. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from raykueue.matrix.outcome import Outcome
from raykueue.model.findings import Verdict
from raykueue.model.versions import Pair
from raykueue.report.record import Record
from raykueue.report.wording import MEANING

ABSENT = "not selected"
"""In place of a verdict: tables have other rows on other pairs."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A test that came to something else than on the default pair."""

    test: str
    there: str
    """Its verdict on the default pair, or `ABSENT`."""
    here: str
    """Its verdict on this pair, or `ABSENT`."""
    why: str
    """The record's reason, of this pair if it has one."""


def default_among(every: Sequence[Outcome], default: Pair) -> Outcome | None:
    """The outcome that the others are compared with; none if it is not there, or found nothing out."""
    return next((one for one in every if one.pair == default and one.report is not None), None)


def differences(one: Outcome, default: Outcome | None) -> tuple[Difference, ...]:
    """Everything that came to something else, in the order of this pair's tests."""
    if default is None or one.pair == default.pair or one.report is None:
        return ()
    there = {record.id: record for record in default.records}
    here = {record.id: record for record in one.records}
    return tuple(_differing(there, here))


def in_short(found: Sequence[Difference]) -> str:
    """`1 fail, 4 not-applicable, 2 not selected`; empty if nothing differs."""
    counted = Counter(difference.here for difference in found)
    order = [*(verdict.value for verdict in MEANING), ABSENT]
    return ", ".join(f"{counted[word]} {word}" for word in order if counted[word])


def _differing(there: dict[str, Record], here: dict[str, Record]) -> Iterator[Difference]:
    for test in dict.fromkeys((*here, *there)):
        mine, its = here.get(test), there.get(test)
        known = mine is not None and its is not None and mine.verdict is Verdict.KNOWN and mine.reason != its.reason
        if _verdict(mine) != _verdict(its) or known:
            about = mine or its
            yield Difference(test, _verdict(its), _verdict(mine), about.reason if about else "")


def _verdict(record: Record | None) -> str:
    return record.verdict.value if record else ABSENT
