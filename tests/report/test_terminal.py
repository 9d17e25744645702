from __future__ import annotations

import dataclasses
import re
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykueue.model.findings import Verdict
from raykueue.report.record import Record
from raykueue.report.terminal import live_line, terminal, wants_colour
from tests.report.samples import finding, full_record, handover, mixed_records, record, report
from tests.report.strategies import records

EXAMPLE = """\
raykueue: Kueue 0.19.2 + KubeRay 1.6.2 on Kubernetes 1.34.4
embedded cluster, tier control-plane, profile core, suite 0.1.0 (b7ae8e3c0)

deletion-policy: 1 fail, 1 not-applicable                                  7.5 s
  FAIL   When a job has failed, what its deletion policy names is          5.5 s
         gone and nothing else is charged [failed-DeleteCluster]
         no-survivors (hazard, job-failed): 2 pods of RayJob t-7/train lived
         1840 to 1871 ms after its hold had ended: 2 CPU and 4 GiB unpaid
         journal   journals/test_rule-failed-DeleteCluster.jsonl.gz
         again     pytest \\
           'suites/test_deletion_policy.py::test_rule[failed-DeleteCluster]' \\
           --kueue 0.19.2 --kuberay 1.6.2 --cluster embedded
  n/a    When a job has succeeded, its deletion policy deletes the
         job itself [succeeded-DeleteSelf]
         gate deletion-rules: since KubeRay 1.5.0, behind a feature gate that is
         off

faults: 1 infra                                                           11.2 s
  INFRA  A restart of Kueue changes nothing for a job that runs           11.2 s
         ComponentDied: process kueue-manager ended with code 2 after 11 s;
         expected it to be ready
         again     pytest suites/test_faults.py::test_kueue_restarts

preemption: 1 known                                                        4.8 s
  known  A preempted job has given its quota back, and its pods are        4.8 s
         gone, before the heir's pods start
         no-overlap (hazard, preempted): heir t-9/urgent ran 612 to 640 ms
         together with 3 survivors of t-9/train: 3 CPU too many
         survivors of a preempted job overlap with its heir
         known     KR-4512 https://github.com/ray-project/kuberay/issues/4512

queueing: 2 pass                                                           5.6 s
  pass   A job waits while its queue is full                               2.0 s
  pass   Jobs of one queue are admitted in the order of their priori…      3.6 s

Note      The guide's step 3 names a queue that its step 2 does not create.
Time      1 min 08 s in all; cluster start 9.1 s, controllers 5.9 s, cluster
          stop 800 ms
Tests     29.1 s added up over 2 processes side by side; setup 12.2 s, call
          12.9 s, judge 3.1 s, teardown 900 ms
Versions  etcd 3.6.5, kwok 0.8.0, ray simulated
Report    reports/20261105T101502Z-kueue0.19.2-kuberay1.6.2-embedded/summary.md

FAILED: 1 of 5 tests failed; 1 of 5 tests could not be judged; 1 test showed a
known upstream defect (exit code 1)
"""


def plain(text: str) -> str:
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def test_a_run_with_every_kind_of_verdict_reads_like_this_on_80_columns() -> None:
    assert terminal(report(mixed_records()), 80, colour=False) == EXAMPLE


def test_colour_changes_nothing_but_colour() -> None:
    coloured = terminal(report(mixed_records()), 80, colour=True)
    assert "\x1b[1;31mFAIL\x1b[0m" in coloured
    assert "\x1b[1;31mFAILED\x1b[0m: 1 of 5" in coloured
    assert plain(coloured) == EXAMPLE


@settings(deadline=None, max_examples=40)
@given(st.lists(records(), max_size=3), st.integers(40, 140))
def test_nothing_is_wider_than_the_terminal_but_a_single_word(each: list[Record], width: int) -> None:
    for line in terminal(report(each), width, colour=False).splitlines():
        assert "\x1b" not in line
        alone = re.fullmatch(r"\s*(?:(?:journal|again|known|Report)\s+)?\S+(?: \\)?", line)
        assert len(line) <= width or alone, line


@pytest.mark.parametrize("number", [31, 200, 5000])
def test_many_passed_tests_are_counted_and_fit_one_screen(number: int) -> None:
    each = [record(f"t.py::{n}") for n in range(number)]
    text = terminal(report(each), 80, colour=False)
    assert f"queueing: {number} pass" in text
    assert len(text.splitlines()) < 15


def test_of_many_tests_those_that_did_not_pass_keep_their_lines() -> None:
    each = [record(f"t.py::{n}") for n in range(100)] + mixed_records()[2:]
    text = terminal(report(each), 80, colour=False)
    assert "FAIL   When a job has failed" in text
    assert "known  A preempted job" in text
    assert "INFRA  A restart of Kueue" in text
    assert "  pass   " not in text


def test_of_many_tests_those_left_out_are_grouped_by_their_reason() -> None:
    each = [record(f"t.py::{n}", verdict=Verdict.NOT_APPLICABLE, reason=f"gate {n % 2}") for n in range(50)]
    text = terminal(report([*each, record()]), 80, colour=False)
    assert "n/a    25 tests: gate 0" in text
    assert "n/a    25 tests: gate 1" in text


def test_a_thousand_failures_stay_readable_and_the_rest_is_counted() -> None:
    each = [dataclasses.replace(full_record(), id=f"t.py::{n}") for n in range(1000)]
    text = terminal(report(each), 80, colour=False)
    assert len(text.splitlines()) < 150
    assert "960 more tests not passed: see summary.md" in text
    assert "FAILED: 1000 of 1000 tests failed (exit code 1)" in text


def test_an_expected_finding_is_a_measurement_that_the_passed_test_shows() -> None:
    text = terminal(report([record(findings=(finding("expects"),))]), 80, colour=False)
    assert "as expected: no-survivors (hazard, job-failed): 2 pods" in text


def test_allowed_findings_are_counted_but_not_told() -> None:
    each = [record(f"t.py::{n}", findings=(finding("allowance:no-survivors/job-failed"),)) for n in range(2)]
    text = terminal(report(each), 80, colour=False)
    assert "Allowed   2 findings within the bounds" in text
    assert "2 pods of RayJob" not in text


def test_hand_overs_have_one_line() -> None:
    text = terminal(report([record(handovers=(handover(), handover(peak={})))]), 120, False)
    assert "Quota     2 hand-overs while old pods still lived, 1 of them run on twice, for 2.0 s at most" in text
    assert "hand-over" not in terminal(report([record()]), 120, False)


def test_the_command_to_run_a_test_again_can_be_copied_from_several_lines() -> None:
    command = "pytest 'suites/t.py::test[it is long enough to be broken somewhere]' --kueue 0.19.2 --kuberay 1.6.2"
    failed = record(verdict=Verdict.FAIL, reason="r", reproduce=command)
    text = terminal(report([failed]), 60, colour=False)
    copied = text[text.index("again") + len("again") : text.index("\n\nTime")]
    assert "\\\n" in copied
    assert shlex.split(copied.replace("\\\n", "")) == shlex.split(command)


def test_an_escape_sequence_of_the_product_does_not_reach_the_terminal() -> None:
    failed = record(verdict=Verdict.FAIL, reason="\x1b[2Jgone", findings=(finding(text="\x1b]0;title\x07"),))
    assert "\x1b" not in terminal(report([failed]), 80, colour=False)


def test_a_green_run_ends_green() -> None:
    text = terminal(report([record()]), 80, colour=True)
    assert text.endswith("\x1b[1;32mGREEN\x1b[0m: 1 of 1 test passed (exit code 0)\n")


def test_what_happened_outside_any_test_is_in_the_verdict() -> None:
    unscoped = record("run::unscoped", suite="run", verdict=Verdict.FAIL, reason="r", findings=(finding(),))
    text = terminal(report([record(), unscoped]), 80, colour=False)
    assert text.endswith("FAILED: outside any test: 1 fail (exit code 1)\n")
    assert text.index("run: 1 fail") > text.index("queueing: 1 pass")


def test_a_live_line_has_number_verdict_duration_and_sentence() -> None:
    line = live_line(record(), 3, 120, 80)
    assert line == "[  3/120] pass     2.0 s  A job waits while its queue is full"


def test_a_live_line_of_a_test_that_did_not_pass_says_why() -> None:
    skipped = record(verdict=Verdict.NOT_APPLICABLE, reason="gate x")
    assert live_line(skipped, 1, 9, 80) == "[1/9] n/a             A job waits while its queue is full - gate x"


def test_a_live_line_is_coloured_only_when_asked() -> None:
    coloured = live_line(record(), 1, 9, 80, colour=True)
    assert "\x1b[32mpass\x1b[0m" in coloured
    assert plain(coloured) == live_line(record(), 1, 9, 80)


@settings(deadline=None, max_examples=40)
@given(records(), st.integers(20, 140))
def test_a_live_line_is_one_line_within_the_width(each: Record, width: int) -> None:
    line = live_line(each, 1, 10, width)
    assert len(line.splitlines()) == 1
    assert len(line) <= width


@pytest.mark.parametrize(
    ("tty", "environ", "wanted"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": ""}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {"TERM": "xterm"}, False),
    ],
)
def test_colour_is_for_terminals_that_were_not_asked_to_do_without(
    tty: bool, environ: dict[str, str], wanted: bool
) -> None:
    assert wants_colour(tty, environ) is wanted
