"""Journals that real controllers filled: a replay says what was judged when they were recorded."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import pytest

from raykueue.model.findings import Finding
from raykueue.run.replaying import agrees, differences, judge_again, read

RECORDED = sorted((Path(__file__).parents[1] / "data" / "journals").glob("*.jsonl.gz"))


def wordless(findings: Iterable[Finding]) -> list[Finding]:
    """Texts may be put better afterwards; ids, causes, windows and amounts are what was judged."""
    return [dataclasses.replace(one, text="") for one in findings]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.partition(".")[0])
def test_a_replay_of_a_recorded_journal_says_what_was_judged_live(path: Path) -> None:
    saved = read(path)
    assert saved.judged is not None
    assert saved.scope is not None
    assert saved.found, "without findings there is nothing to compare"
    replayed = judge_again(saved)
    assert replayed.problems == ()
    assert differences(wordless(saved.found), wordless(replayed.findings)) == []


def test_there_are_journals_and_a_difference_would_be_seen() -> None:
    assert len(RECORDED) >= 5
    changed = [dataclasses.replace(one, peak={}) for one in read(RECORDED[0]).found]
    assert sum("peak was {} live" in line for line in agrees(changed, RECORDED[0])) == len(changed) > 0
