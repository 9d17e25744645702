from __future__ import annotations

from itertools import product

import pytest

from raykueue.model.findings import Verdict
from raykueue.report.record import Record
from raykueue.report.verdict import counts, exit_code, message
from tests.report.samples import record

P, F, K, X, I, S, N = Verdict  # noqa: E741 - a table of letters


def with_verdicts(verdicts: str) -> list[Record]:
    letters = dict(zip("PFKXISN", Verdict, strict=True))
    return [record(f"t.py::{n}", verdict=letters[letter], reason="r") for n, letter in enumerate(verdicts)]


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ("P", 0),
        ("K", 0),
        ("PKSN", 0),
        ("F", 1),
        ("X", 1),
        ("PPX", 1),
        ("FI", 1),
        ("XI", 1),
        ("I", 3),
        ("PI", 3),
        ("SI", 3),
        ("", 5),
        ("S", 5),
        ("SNN", 5),
    ],
)
def test_the_exit_code_follows_from_the_verdicts(verdicts: str, code: int) -> None:
    assert exit_code(with_verdicts(verdicts)) == code


@pytest.mark.parametrize(("verdicts", "code"), [("P", 3), ("", 3), ("S", 3), ("F", 1), ("I", 3)])
def test_a_problem_of_the_run_is_never_green(verdicts: str, code: int) -> None:
    assert exit_code(with_verdicts(verdicts), ["the recorder died"]) == code


@pytest.mark.parametrize(("verdicts", "code"), [("P", 2), ("", 2), ("PI", 2), ("SN", 2), ("F", 1), ("XI", 1)])
def test_an_interruption_yields_only_to_a_proven_failure(verdicts: str, code: int) -> None:
    assert exit_code(with_verdicts(verdicts), interrupted=True) == code
    assert exit_code(with_verdicts(verdicts), ["the recorder died"], interrupted=True) == code


def test_green_needs_a_test_that_ran_and_nothing_that_is_worse_than_known() -> None:
    for several in product("PFKXISN", repeat=3):
        verdicts = "".join(several)
        green = bool(set(verdicts) & set("PK")) and not set(verdicts) & set("FXI")
        assert (exit_code(with_verdicts(verdicts)) == 0) is green, verdicts


def test_a_record_about_the_run_is_no_test_that_ran() -> None:
    assert exit_code([record("run::unscoped")]) == 5
    assert exit_code([record("run::unscoped", verdict=Verdict.FAIL), record()]) == 1


def test_every_verdict_is_counted_also_the_absent_ones() -> None:
    found = counts(with_verdicts("PPF"))
    assert found == {P: 2, F: 1, K: 0, X: 0, I: 0, S: 0, N: 0}


def test_a_message_begins_with_the_verdict_and_is_one_line() -> None:
    assert message(record(verdict=Verdict.KNOWN, reason="KR-1:\n still there")) == "known: KR-1: still there"
    assert message(record(verdict=Verdict.INFRA, failure="Boom\nmore")) == "infra: Boom"
    assert message(record(verdict=Verdict.FAIL)) == "fail: (no reason was given)"
