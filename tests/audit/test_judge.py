from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from raykueue.audit.answers import Circumstances
from raykueue.audit.bounds import Bounds
from raykueue.audit.explanations import Allowance, Expect, KnownIssue
from raykueue.audit.judge import Judgement, fixed, judge
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Moment
from raykueue.model.findings import Finding, Verdict
from raykueue.model.gates import Range

PAIR = {"kubernetes": "1.34.4", "kueue": "0.19.2", "kuberay": "1.6.2"}
TEST = "suites/test_modes.py::test_sidecar"


def finding(
    id_: str = "f1", seconds: float = 4.0, cpu: int = 1000, cause: str = "extra-pods", **changes: Any
) -> Finding:
    body: dict[str, Any] = {
        "id": id_,
        "rule": "pods-covered",
        "klass": "hazard",
        "cause": cause,
        "text": f"text of {id_}",
        "objects": (),
        "begin": Moment(1, 0),
        "end": Moment(2, 0),
        "peak": {"cpu": cpu},
        "seconds": (seconds, seconds),
    }
    return Finding(**{**body, **changes})


def issue(**changes: Any) -> KnownIssue:
    body: dict[str, Any] = {
        "id": "k1",
        "link": "https://example.com/1",
        "rule": "pods-covered",
        "cause": "extra-pods",
        "tests": (TEST,),
        "occurs": "always",
        "bounds": Bounds(at_most_seconds=10),
        "review": datetime.date(2030, 1, 1),
    }
    return KnownIssue(**{**body, **changes})


def allowance(**changes: Any) -> Allowance:
    body: dict[str, Any] = {
        "id": "a1",
        "rule": "pods-covered",
        "cause": "extra-*",
        "why": "by design",
        "bounds": Bounds(at_most_seconds="T_gc + g"),
    }
    return Allowance(**{**body, **changes})


EXPECT = Expect.of("pods-covered", "extra-pods", at_least_seconds=3)


def judged(
    findings: list[Finding],
    expects: tuple[Expect, ...] = (),
    known: tuple[KnownIssue, ...] = (),
    allows: tuple[Allowance, ...] = (),
    circumstances: Mapping[str, Circumstances] | None = None,
    names: Mapping[str, float] | None = None,
) -> Judgement:
    return judge(
        findings,
        expects,
        known,
        allows,
        test=TEST,
        pair=PAIR,
        thresholds=Thresholds(),
        circumstances=circumstances,
        names=names,
    )


def test_nothing_found_and_nothing_expected_passes() -> None:
    assert judged([]).verdict is Verdict.PASS
    assert judged([]).text() == ""


def test_a_finding_that_nothing_explains_fails_and_is_told() -> None:
    judgement = judged([finding()])
    assert judgement.verdict is Verdict.FAIL
    assert "pods-covered (hazard, extra-pods): text of f1" in judgement.text()


def test_the_order_is_expects_then_known_then_allowed() -> None:
    one = [finding()]
    assert judged(one, (EXPECT,), (issue(),), (allowance(),)).explained[0].by == "expects"
    assert judged(one, (), (issue(),), (allowance(),)).explained[0].by == "known"
    assert judged(one, (), (), (allowance(),)).explained[0].by == "allows"


def test_each_finding_is_explained_once() -> None:
    judgement = judged([finding("f1"), finding("f2", seconds=1)], (EXPECT,), (issue(),), (allowance(),))
    assert [(e.by, e.what) for e in judgement.explained] == [
        ("expects", "pods-covered / extra-pods"),
        ("known", "k1"),
    ]
    assert judgement.verdict is Verdict.KNOWN


def test_an_expected_finding_that_does_not_appear_fails() -> None:
    judgement = judged([], (EXPECT,))
    assert judgement.verdict is Verdict.FAIL
    assert "expected, but did not appear: pods-covered / extra-pods" in judgement.text()


def test_an_expected_finding_that_is_too_short_is_missing_and_says_so() -> None:
    judgement = judged([finding(seconds=2)], (EXPECT,), (), (allowance(),))
    assert judgement.explained[0].by == "allows"
    assert "at least 3 s, it lasted 2 s" in judgement.text()


def test_another_cause_is_not_what_was_expected() -> None:
    judgement = judged([finding(cause="under-count")], (EXPECT,))
    assert [e.by for e in judgement.explained] == ["nothing"]
    assert judgement.missing


def test_an_expectation_may_say_how_often_and_how_much() -> None:
    once = Expect.of("pods-covered", "extra-pods", at_least={"cpu": "500m"}, at_most={"cpu": 1}, times=1)
    assert judged([finding()], (once,)).verdict is Verdict.PASS
    assert judged([finding("f1"), finding("f2")], (once,)).verdict is Verdict.FAIL
    assert "at most 1 CPU, it was 2 CPU" in judged([finding(cpu=2000)], (once,)).text()
    assert "at least 0.5 CPU, it was 0.1 CPU" in judged([finding(cpu=100)], (once,)).text()


@pytest.mark.parametrize("bounds", [{}, {"at_least_seconds": 0}, {"at_least": {"cpu": 0}}, {"at_most_seconds": 5}])
def test_an_expectation_that_forces_nothing_is_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="forces nothing"):
        Expect.of("pods-covered", "extra-pods", **bounds)


def test_a_known_issue_is_for_its_versions_its_tests_and_its_bounds() -> None:
    assert judged([finding()], known=(issue(kueue=(Range("0.19.3"),)),)).verdict is Verdict.FAIL
    assert judged([finding()], known=(issue(tests=("suites/other.py::*",)),)).verdict is Verdict.FAIL
    too_long = judged([finding(seconds=11)], known=(issue(),))
    assert too_long.verdict is Verdict.FAIL
    assert "known issue k1 (https://example.com/1): it may last at most 10 s, it lasted 11 s" in too_long.text()


def test_an_allowance_is_a_formula_over_the_jobs_own_grace() -> None:
    at = {"f1": Circumstances(grace=2)}
    assert judged([finding(seconds=7)], allows=(allowance(),), circumstances=at).verdict is Verdict.PASS
    failed = judged([finding(seconds=7.1)], allows=(allowance(),), circumstances=at)
    assert "at most 7 s (T_gc + g), it lasted 7.1 s" in failed.text()
    given = judged([finding(seconds=7)], allows=(allowance(),), circumstances=at, names={"g": 0})
    assert given.verdict is Verdict.FAIL


def test_an_allowance_covers_no_more_than_the_charge() -> None:
    at = {"f1": Circumstances(charge={"cpu": 500})}
    failed = judged([finding()], allows=(allowance(),), circumstances=at)
    assert "0.5 CPU more than its payer was charged" in failed.text()
    unbound = allowance(within_charge=False)
    assert judged([finding()], allows=(unbound,), circumstances=at).verdict is Verdict.PASS


def test_what_a_payer_was_not_charged_and_is_told_of_is_not_held_against_its_survivors() -> None:
    at = {"f1": Circumstances(charge={"cpu": 1000})}
    told = finding("f0", cpu=500, cause="under-count", payer="w#1")
    known = issue(cause="under-count")
    rows = (allowance(rule="no-survivors"),)

    def verdict(*findings: Finding) -> Verdict:
        return judged(list(findings), known=(known,), allows=rows, circumstances=at).verdict

    def survivors(cpu: int, payer: str = "w#1") -> Finding:
        return finding(rule="no-survivors", cpu=cpu, payer=payer)

    assert verdict(told, survivors(1500)) is Verdict.KNOWN
    assert verdict(told, survivors(1501)) is Verdict.FAIL
    assert verdict(told, survivors(1500, "w#2")) is Verdict.FAIL
    assert verdict(survivors(1500)) is Verdict.FAIL


def test_of_what_a_payer_was_not_charged_only_what_it_was_not_charged_at_once_counts() -> None:
    at = {"s": Circumstances(charge={"cpu": 1000})}
    rows = (allowance(rule="no-survivors"),)
    survivors = finding("s", rule="no-survivors", cpu=2000, payer="w#1")

    def verdict(*windows: tuple[int, int | None]) -> Verdict:
        told = [
            finding(
                f"f{begin}",
                cpu=500,
                cause="under-count",
                payer="w#1",
                begin=Moment(begin, 0),
                end=None if end is None else Moment(end, 0),
            )
            for begin, end in windows
        ]
        known = issue(cause="under-count")
        return judged([*told, survivors], known=(known,), allows=rows, circumstances=at).verdict

    assert verdict((1, 5), (3, 7)) is Verdict.KNOWN
    assert verdict((1, None), (3, None)) is Verdict.KNOWN
    assert verdict((1, 3), (3, 7)) is Verdict.FAIL


def test_a_finding_that_is_part_of_another_is_not_judged() -> None:
    part = finding(part_of="f0")
    judgement = judged([part])
    assert (judgement.verdict, judgement.explained, judgement.covered) == (Verdict.PASS, (), (part,))


def test_a_known_issue_is_fixed_only_if_all_its_tests_ran_and_none_showed_it() -> None:
    always, planned = issue(tests=("t::*",)), ["t::a", "t::b", "other"]
    nothing: frozenset[str] = frozenset()
    assert fixed([always], PAIR, planned, {"t::a": nothing, "t::b": nothing}) == [always]
    assert fixed([always], PAIR, planned, {"t::a": nothing}) == []
    assert fixed([always], PAIR, planned, {"t::a": nothing, "t::b": frozenset({"k1"})}) == []
    assert fixed([issue(tests=("t::*",), occurs="sometimes")], PAIR, planned, dict.fromkeys(planned, nothing)) == []
    assert fixed([issue(tests=("none::*",))], PAIR, planned, dict.fromkeys(planned, nothing)) == []
    other = issue(tests=("t::*",), kueue=(Range(before="0.19.0"),))
    assert fixed([other], PAIR, planned, dict.fromkeys(planned, nothing)) == []
