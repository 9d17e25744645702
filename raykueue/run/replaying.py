"""A saved journal, judged again without a cluster: by the same fold, at the barrier at which it was judged live."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raykueue.audit.ledger import Ledger
from raykueue.audit.replay import replay
from raykueue.audit.scope import Scope
from raykueue.errors import UsageError
from raykueue.model.events import Barrier, Event, Header, Marker, Record
from raykueue.model.findings import Finding
from raykueue.model.journal import SLICE, JournalError
from raykueue.model.views import namespace
from raykueue.run.answers import finding_from_json, finding_to_json
from raykueue.run.journals import load


@dataclass(frozen=True, slots=True)
class Saved:
    """A journal, and what its end says about it."""

    path: Path
    header: Header
    records: tuple[Record, ...]
    """Without the end."""
    scope: Scope | None
    """Whose part of a journal it is; None: a whole one."""
    judged: Barrier | None
    """The barrier at which it was judged live; None: it was not."""
    found: tuple[Finding, ...]
    """What was found then."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay says."""

    findings: tuple[Finding, ...]
    problems: tuple[str, ...]
    """Why nothing can be judged."""


def read(path: Path) -> Saved:
    """A journal from a file.

    Raises:
        UsageError: there is none, it is no journal, or it is cut short; says which, and where.
    """
    try:
        records = load(path)
        if not path.name.endswith(".gz") and not _ends_with_line_break(path):
            raise UsageError(f"{path} is cut short: its last line, number {len(records) + 1}, is not complete")
    except (EOFError, zlib.error) as error:
        raise UsageError(f"{path} is cut short: {error}") from error
    except (JournalError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a journal: {error}") from error
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from error
    if not records or not isinstance(records[0], Header):
        first = type(records[0]).__name__ if records else "nothing"
        raise UsageError(f"{path} is not a journal: it must begin with a header, and begins with {first}")
    end = records.pop() if isinstance(records[-1], Marker) and records[-1].what == SLICE else None
    about: Mapping[str, Any] = end.about if isinstance(end, Marker) else {}
    judged = about.get("judged")
    return Saved(
        path,
        records[0],
        tuple(records),
        _scope(about["scope"]) if about else None,
        Barrier(judged["rev"], judged["arrived"]) if judged else None,
        tuple(finding_from_json(one) for one in judged["findings"]) if judged else (),
    )


def judge_again(saved: Saved) -> Replayed:
    """The findings, of its scope if it is a part, as they were when it was judged, else as they are at its end.

    Raises:
        UsageError: its settings are bad, or the barrier at which it was judged is missing.
    """
    try:
        ledger = replay(saved.records, until=saved.judged)
    except ValueError as error:
        raise UsageError(f"{saved.path}: {error}") from error
    if saved.scope is None:
        everything = Scope(frozenset(namespace(r.object) for r in saved.records if isinstance(r, Event)))
        return Replayed(tuple(ledger.unscoped([])), _problems(ledger, everything))
    return Replayed(tuple(ledger.findings(saved.scope)), _problems(ledger, saved.scope))


def disagreements(saved: Saved) -> list[str]:
    """Where a replay says something else than what the journal says was judged live; empty if nothing was judged.

    Raises:
        UsageError: as `judge_again` does.
    """
    return differences(saved.found, judge_again(saved).findings) if saved.judged else []


def agrees(live: Iterable[Finding], journal: Path) -> list[str]:
    """Where a replay of a saved journal says something else than what was judged live; empty if nowhere.

    Ids, causes, objects, windows with their times, amounts and texts must all be the same.

    Raises:
        UsageError: as `read` and `judge_again` do.
    """
    return differences(live, judge_again(read(journal)).findings)


def differences(live: Iterable[Finding], replayed: Iterable[Finding]) -> list[str]:
    """For people, one line each: findings that only one side has, and fields that differ."""
    before, after = {one.id: one for one in live}, {one.id: one for one in replayed}
    told = [f"{_name(one)} was found live, but not by the replay" for key, one in before.items() if key not in after]
    told += [f"{_name(one)} was found by the replay, but not live" for key, one in after.items() if key not in before]
    for key in before.keys() & after.keys():
        was, now = finding_to_json(before[key]), finding_to_json(after[key])
        told += [
            f"{_name(before[key])}: {field} was {was[field]!r} live, and is {now[field]!r} in the replay"
            for field in was
            if was[field] != now[field]
        ]
    return sorted(told)


def _name(finding: Finding) -> str:
    return f"{finding.rule} {finding.id} ({finding.cause})"


def _problems(ledger: Ledger, scope: Scope) -> tuple[str, ...]:
    return tuple(f"{one.kind}: {one.text}" for one in ledger.problems(scope))


def _scope(names: Mapping[str, Any]) -> Scope:
    return Scope(
        frozenset(names["namespaces"]),
        frozenset(names["cluster_queues"]),
        frozenset(names["flavors"]),
        frozenset(names["cohorts"]),
    )


def _ends_with_line_break(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return file.read(1) in (b"\n", b"")
