from __future__ import annotations

import pytest

from raykueue.model.findings import Verdict
from raykueue.report.wording import MEANING, commit_word, duration, one_line, tally, title
from tests.report.samples import record


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0804, "80 ms"),
        (0.9996, "1.0 s"),
        (2.14, "2.1 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.7, "1 h 00 min"),
        (8040, "2 h 14 min"),
    ],
)
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_every_verdict_has_a_meaning() -> None:
    assert set(MEANING) == set(Verdict)


def test_rows_of_one_test_are_told_apart_by_their_parameters() -> None:
    assert title(record("t.py::test_a[x::y]", sentence="It works.")) == "It works [x::y]"


def test_a_test_without_a_sentence_is_called_by_its_name() -> None:
    assert title(record("suites/t.py::test_waits_in_line[row]", sentence="")) == "waits in line [row]"
    assert title(record("::", sentence=".")) == "(no sentence)"


def test_one_line_shortens_and_says_so() -> None:
    assert one_line("a\n\tb   c") == "a b c"
    assert one_line("x" * 20, 10) == "x" * 9 + "…"


def test_a_tally_names_what_occurs_the_important_first() -> None:
    each = [record(verdict=verdict) for verdict in (Verdict.PASS, Verdict.KNOWN, Verdict.PASS, Verdict.FAIL)]
    assert tally(each) == "1 fail, 1 known, 2 pass"


def test_a_commit_is_shortened_but_not_what_was_changed_beyond_it() -> None:
    assert commit_word("b" * 40) == "b" * 9
    assert commit_word("b" * 40 + "-dirty-0a1b2c3d4e5f") == "b" * 9 + "-dirty-0a1b2c3d4e5f"
    assert commit_word("") == "of unknown commit"
