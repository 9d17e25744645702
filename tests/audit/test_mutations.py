"""Proof that the ledger can fail: faults planted into valid runs, recorded and generated ones.

A valid run has findings that the pair is allowed only. A fault above its rule's threshold is found, by that rule and
once; one below it by nobody; and where the record has a hole, nothing is judged.
"""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from raykueue.audit.judge import judge
from raykueue.audit.replay import replay
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.model.findings import Finding
from raykueue.run.explanations import allowances
from raykueue.run.journals import load
from tests.audit.harmless import HARMLESS, SPOILING, Harmless, Spoiling
from tests.audit.journals import NAMESPACE
from tests.audit.lives import Plan, life, plans
from tests.audit.mutators import FAULTS, Fault
from tests.audit.spots import Spot
from tests.audit.stories import Script

JOURNALS = Path(__file__).parents[1] / "data" / "journals"
RECORDED = ("deploy", "preemption", "priority", "queueing")
PLAIN = Plan(0.0, 3.0, 2, "succeeds")
DELETED = Plan(0.0, 3.0, 2, "is deleted")
CLEAR = 0.05
"""Seconds by which a size must clear its threshold: a window opens with an event, a deadline passes between two."""


@functools.cache
def recorded(name: str) -> Script:
    """A run of the real controllers."""
    return Script.of(load(JOURNALS / f"{name}.jsonl.gz"))


bases = st.one_of(st.sampled_from(RECORDED).map(recorded), plans.map(life).map(Script.of))


def verdict(script: Script) -> tuple[list[Finding], list[str]]:
    """(findings that nothing explains, kinds of problems), where pods go at once as on simulated nodes."""
    ledger = replay(script.journal())
    found = ledger.unscoped([])
    judged = judge(
        found,
        [],
        [],
        allowances(),
        test="",
        pair=script.header.pair,
        thresholds=Thresholds(),
        circumstances=ledger.circumstances(found),
        names={"g": 0.0},
    )
    namespaces = {line.obj["metadata"].get("namespace", "") for line in script.lines if line.like("Pod")}
    problems = ledger.problems(Scope(frozenset({NAMESPACE, *namespaces})))
    return [one.finding for one in judged.unexplained], [one.kind for one in problems]


def told(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(one.rule, one.cause, one.text) for one in findings]


def spot_in(data: st.DataObject, row: Fault | Harmless | Spoiling) -> Spot:
    """A base that has room for it, and a place there."""
    found = list(row.spots(data.draw(bases, label="base")))
    assume(found)
    return data.draw(st.sampled_from(found), label="spot")


def check_found(fault: Fault, spot: Spot, size: float) -> None:
    findings, problems = verdict(fault.plant(spot, size))
    assert problems == []
    assert [(one.rule, fnmatchcase(one.cause, fault.cause)) for one in findings] == [(fault.rule, True)], told(findings)
    (found,) = findings
    if fault.unit == "seconds":
        assert found.seconds == pytest.approx((size, size), abs=CLEAR)
    elif fault.unit == "millicores":
        assert found.peak["cpu"] == round(size)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_run_has_only_what_the_pair_is_allowed(name: str) -> None:
    assert verdict(recorded(name)) == ([], [])


@given(plans)
def test_a_generated_run_has_only_what_the_pair_is_allowed(planned: list[Plan]) -> None:
    findings, problems = verdict(Script.of(life(planned)))
    assert (told(findings), problems) == ([], [])


@given(st.data())
def test_a_fault_above_its_threshold_is_found_by_its_rule_and_once(data: st.DataObject) -> None:
    fault = data.draw(st.sampled_from(FAULTS), label="fault")
    spot = spot_in(data, fault)
    least = fault.threshold(spot) if fault.threshold else 0.0
    size = data.draw(st.floats(least + CLEAR if fault.unit != "millicores" else 1, 3 * least + 10), label="size")
    check_found(fault, spot, size)


@given(st.data())
def test_a_fault_below_its_threshold_is_found_by_nobody(data: st.DataObject) -> None:
    fault = data.draw(st.sampled_from([one for one in FAULTS if one.threshold]), label="fault")
    spot = spot_in(data, fault)
    assert fault.threshold is not None
    most = fault.threshold(spot)
    size = data.draw(st.floats(-500, 0) if fault.unit == "millicores" else st.floats(1, most - CLEAR), label="size")
    findings, problems = verdict(fault.plant(spot, size))
    assert (told(findings), problems) == ([], [])


@given(st.data())
def test_what_is_harmless_is_found_by_nobody(data: st.DataObject) -> None:
    change = data.draw(st.sampled_from(HARMLESS), label="change")
    findings, problems = verdict(change.plant(spot_in(data, change)))
    assert (told(findings), problems) == ([], [])


@given(st.data())
def test_a_record_with_a_hole_is_never_judged(data: st.DataObject) -> None:
    change = data.draw(st.sampled_from(SPOILING), label="change")
    _, problems = verdict(change.plant(spot_in(data, change)))
    assert set(problems) == {change.kind}


@pytest.mark.parametrize("row", [*FAULTS, *HARMLESS, *SPOILING], ids=lambda row: row.name)
def test_every_change_has_a_place_in_some_run(row: Fault | Harmless | Spoiling) -> None:
    """Otherwise a row would say nothing."""
    generated = [Script.of(life([plan])) for plan in (PLAIN, DELETED)]
    assert any(list(row.spots(script)) for script in [*map(recorded, RECORDED), *generated])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_is_found_right_above_its_threshold(fault: Fault) -> None:
    scripts = [*map(recorded, RECORDED), *(Script.of(life([plan])) for plan in (PLAIN, DELETED))]
    for script in scripts:
        for spot in fault.spots(script):
            least = fault.threshold(spot) if fault.threshold else 1.0
            check_found(fault, spot, least + (1 if fault.unit == "millicores" else CLEAR))
