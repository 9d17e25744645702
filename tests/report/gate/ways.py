"""Ways to be wrong: real report folders, each made wrong in one way, for which a gate must stay closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from raykueue.audit.bounds import Bounds
from raykueue.audit.explanations import Allowance
from raykueue.errors import EXIT_OK
from raykueue.model.gates import Range
from raykueue.report.gate.decision import Decision
from raykueue.report.record import Record
from tests.report.gate.reports import IDS, VARYING, a_record, answer, write
from tests.report.test_known import issue

Damage: TypeAlias = Callable[[Path, Path], Sequence[Path]]
"""Takes a good report, which the gate opens for, and the folder that it is in; returns what the gate is given."""
KNOWN = issue(tests=("suites/*",), occurs="sometimes")
EVICTED = Allowance("evicted", "no-survivors", "evicted/*", "as designed", Bounds())
OLD = replace(EVICTED, id="old", kueue=(Range("", "0.9"),))


class Ways:
    """A table of them."""

    def __init__(self) -> None:
        self.rows: list[tuple[Damage, int, str]] = []

    def wrong(self, code: int, words: str) -> Callable[[Damage], Damage]:
        """Adds one, with the exit code and the words that tell it."""

        def add(damage: Damage) -> Damage:
            self.rows.append((damage, code, words))
            return damage

        return add


def stays_closed(damage: Damage, code: int, words: str, base: Path) -> None:
    """Asserts that the gate opens without the damage, and stays closed with it, for the right reason."""
    report = write(base / "reports")
    assert asked(report).exit_code == EXIT_OK, asked(report).objections

    decision = asked(*damage(report, base))
    assert decision.exit_code == code
    assert [one for one in decision.objections if words in one.what], decision.objections


def asked(*folders: Path) -> Decision:
    """With a known issue that may show anywhere, and two allowances, of which one is of older versions."""
    return answer(*folders, issues=(KNOWN,), allowances=(EVICTED, OLD))


def with_changed(test: str, **changes: Any) -> list[Record]:
    return [a_record(one, **(changes if one == test else {})) for one in (*IDS, VARYING)]
