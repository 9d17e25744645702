from __future__ import annotations

from raykueue.model.findings import Verdict
from raykueue.report.settle import problem_records, settle
from tests.report.samples import STARTED, finding, record


def test_every_planned_test_has_one_record_in_the_order_of_the_plan() -> None:
    a, b = record("t.py::a"), record("t.py::b")
    assert settle(["t.py::a", "t.py::b"], [b, a], interrupted=False, at=STARTED) == (a, b)


def test_a_planned_test_without_a_record_is_lost() -> None:
    (lost,) = settle(["suites/test_x.py::a"], [], interrupted=False, at=STARTED)
    assert lost.verdict is Verdict.INFRA
    assert lost.reason.startswith("lost: ")
    assert (lost.id, lost.suite, lost.started) == ("suites/test_x.py::a", "x", STARTED)


def test_a_lost_test_of_an_interrupted_run_says_so() -> None:
    (lost,) = settle(["t.py::a"], [], interrupted=True, at=STARTED)
    assert "interrupted" in lost.reason


def test_a_test_that_was_not_planned_is_not_trusted_but_keeps_what_it_said() -> None:
    stray = record("t.py::stray", notes=("n",))
    (settled,) = settle([], [stray], interrupted=False, at=STARTED)
    assert settled.verdict is Verdict.INFRA
    assert "not planned" in settled.reason
    assert "it said pass" in settled.reason
    assert settled.notes == ("n",)


def test_a_record_of_the_run_itself_needs_no_plan() -> None:
    unscoped = record("run::unscoped", verdict=Verdict.FAIL, reason="r")
    test = record("t.py::a")
    assert settle(["t.py::a"], [unscoped, test], interrupted=False, at=STARTED) == (test, unscoped)


def test_two_records_of_one_test_become_one_that_keeps_both() -> None:
    first = record("t.py::a", findings=(finding("expects"),))
    second = record("t.py::a", verdict=Verdict.FAIL, reason="went wrong", failure="long", findings=(finding(),))
    (settled,) = settle(["t.py::a"], [first, second], interrupted=False, at=STARTED)
    assert settled.verdict is Verdict.INFRA
    assert settled.reason.startswith("2 records of one test, which said pass, fail")
    assert "went wrong" in settled.failure
    assert settled.findings == (finding("expects"), finding())


def test_each_problem_of_the_run_is_a_record_of_its_own() -> None:
    first, second = problem_records(["the recorder died", "etcd died"], STARTED)
    assert (first.id, second.id) == ("run::problem-1", "run::problem-2")
    assert first.of_run
    assert first.verdict is Verdict.INFRA
    assert second.reason == "etcd died"
