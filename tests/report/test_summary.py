from __future__ import annotations

import dataclasses
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from raykueue.model.findings import Verdict
from raykueue.report.record import Record, Replaced
from raykueue.report.summary import LIMIT, code, fenced, inline, markdown
from tests.report.samples import FACTS, finding, full_record, handover, mixed_records, record, report
from tests.report.strategies import records, texts


def cells(row: str) -> int:
    """Cells of a table's row, as GFM counts them: an escaped `|` splits nothing."""
    return len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) - 1


def test_the_verdict_comes_first() -> None:
    text = markdown(report(mixed_records()))
    assert text.startswith("# FAILED: 1 of 5 tests failed; 1 of 5 tests could not be judged; 1 test showed a known")


def test_a_failure_has_its_sentence_its_finding_its_journal_and_how_to_run_it_again() -> None:
    text = markdown(report([full_record()]))
    failures = text[text.index("## Failures") : text.index("## Notes")]
    for part in (
        "### A job waits while its queue is full",
        "* no-survivors (hazard, job-failed): 2 pods of RayJob t-7/train lived 1840 to 1871 ms",
        "Traceback …",
        "`journals/test_waits.jsonl.gz`",
        "```sh\npytest 'suites/test_queueing.py::test_waits' --kueue 0.19.2\n```",
    ):
        assert part in failures
    assert failures.count("2 pods of RayJob") == 1, "explained findings and parts of others are not raised"


def test_a_known_defect_has_its_link_and_the_tests_that_show_it() -> None:
    text = markdown(report(mixed_records()))
    known = text[text.index("## Known upstream defects") : text.index("## Notes")]
    assert "`KR-4512` https://github.com/ray-project/kuberay/issues/4512" in known
    assert "A preempted job has given its quota back" in known
    assert "612 to 640 ms" in known


def test_a_known_defect_without_a_finding_is_listed_too() -> None:
    text = markdown(report([record(verdict=Verdict.KNOWN, reason="KR-1: never becomes ready")]))
    assert "KR-1: never becomes ready" in text[text.index("## Known") : text.index("## Where")]


def test_notes_stand_once_though_many_tests_write_them() -> None:
    each = [record(f"t.py::{n}", notes=("The guide is wrong.",)) for n in range(3)]
    assert markdown(report(each)).count("The guide is wrong.") == 1


def test_what_was_replaced_in_manifests_stands_once() -> None:
    replaced = (Replaced("spec.entrypoint", "python train.py", "wait for it"),)
    text = markdown(report([record(f"t.py::{n}", replaced=replaced) for n in range(3)]))
    assert text.count("* `spec.entrypoint`: `python train.py` became `wait for it`\n") == 1


def test_every_hand_over_has_its_times_in_one_table() -> None:
    text = markdown(report([full_record(), record("t.py::other", handovers=(handover(cluster_queue="cq-t-8"),))]))
    part = text[text.index("## Hand-overs") : text.index("## Where the time went")]
    assert "3 hand-overs while old pods still lived, 2 of them run on twice, for 2.0 s at most" in part
    assert "train -> urgent (cq-t-8)\n   110 ms   1000 ms   3000 ms  -2000 ms   2000 ms  1.5 CPU" in part
    assert "## Hand-overs" not in markdown(report([record()]))


def test_versions_and_where_the_time_went_are_there() -> None:
    text = markdown(report(mixed_records()))
    assert "| etcd | `3.6.5` |" in text
    assert "cluster start 9.1 s" in text
    assert "over 2 processes side by side" in text


def test_a_green_run_has_no_empty_sections() -> None:
    text = markdown(report([record()]))
    assert text.startswith("# GREEN: 1 of 1 test passed\n")
    assert re.findall("^## (.*)", text, re.M) == ["Where the time went", "Versions", "Every test"]


def test_ten_thousand_passed_tests_stay_below_the_limit_and_the_cut_is_said() -> None:
    each = [record(f"suites/test_many.py::test_{n}[{'x' * 80}]") for n in range(10_000)]
    text = markdown(report(each))
    assert LIMIT - 2000 < len(text.encode()) <= LIMIT
    assert re.search(r"Cut here, to stay within a CI summary's size: \d+ more", text[-300:])


def test_ten_thousand_failures_stay_below_the_limit_and_leave_room_for_the_rest() -> None:
    failing = dataclasses.replace(
        full_record(), failure="é" * 20_000, reason="ü" * 3000, findings=(finding(text="ö" * 5000),) * 50
    )
    each = [dataclasses.replace(failing, id=f"t.py::{n}", notes=(f"{n} " + "ä" * 999,)) for n in range(10_000)]
    text = markdown(report(each))
    assert len(text.encode()) <= LIMIT
    assert "## Versions" in text
    assert "## Every test" in text
    assert "(cut here; all of it is in records.jsonl)" in text


@settings(deadline=None, max_examples=40)
@given(st.lists(records(), max_size=3))
def test_each_test_is_one_row_whatever_the_records_contain(each: list[Record]) -> None:
    text = markdown(report(each))
    text.encode()
    rows = text[text.index("## Every test") :].splitlines()[2:]
    assert len(rows) == len(each) + 2
    assert {cells(row) for row in rows} == {4}


@settings(deadline=None)
@given(texts)
def test_inline_text_has_no_markup_of_its_own(text: str) -> None:
    shown = inline(text)
    assert len(shown.splitlines()) <= 1
    assert not re.search(r"[<>]", shown)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*|\[\]]", shown)


@settings(deadline=None)
@given(texts)
def test_a_code_span_ends_where_it_should(text: str) -> None:
    shown = code(text)
    fence = re.match("`+", shown)
    assert fence
    inside = shown[len(fence[0]) : -len(fence[0])]
    assert shown.endswith(fence[0])
    assert len(fence[0]) not in [len(run) for run in re.findall("`+", inside)]
    assert not re.search(r"(?<!\\)\|", shown)


@settings(deadline=None)
@given(texts)
def test_a_code_block_ends_where_it_should(text: str) -> None:
    lines = fenced(text, "text").rstrip("\n").split("\n")
    fence = lines[0].removesuffix("text")
    assert lines[-1] == fence
    assert not any(line.strip().startswith(fence) for line in lines[1:-1])


def test_underscores_inside_a_word_stay_readable() -> None:
    assert inline("a_b _c_") == "a_b \\_c\\_"


def test_an_empty_run_says_so() -> None:
    assert markdown(report([])).startswith("# EMPTY: nothing ran: no test was selected\n")
    skipped = record(verdict=Verdict.SKIPPED, reason="r")
    assert markdown(report([skipped])).startswith("# EMPTY: nothing ran: 1 skipped\n")
    assert "| etcd" in markdown(report([], facts=FACTS))
