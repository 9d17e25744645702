from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from raykueue.model.findings import Verdict
from raykueue.report import record as module
from raykueue.report.errors import ReportError
from raykueue.report.record import Record, check, decode, encode, suite_of, utc
from tests.report.samples import finding, full_record, record
from tests.report.strategies import records


def test_a_record_with_every_field_comes_back_as_it_was() -> None:
    assert decode(encode(full_record())) == full_record()


@settings(deadline=None, max_examples=40)
@given(records())
def test_any_text_comes_back_as_it_was_and_stays_on_one_line(each: Record) -> None:
    line = encode(each)
    assert len(line.splitlines()) == 1
    assert line.isascii()
    assert decode(line) == each


def test_a_dict_holds_nothing_but_what_json_knows() -> None:
    body = full_record().to_dict()
    assert json.loads(json.dumps(body)) == body


def test_the_schema_is_itself_valid() -> None:
    Draft202012Validator.check_schema(module._VALIDATOR.schema)


def test_the_schema_names_exactly_the_fields_of_a_record_and_of_a_finding() -> None:
    schema: Any = module._VALIDATOR.schema
    body = full_record().to_dict()
    assert set(schema["properties"]) == set(schema["required"]) == set(body)
    found = schema["$defs"]["finding"]
    assert set(found["properties"]) == set(found["required"]) == set(body["findings"][0])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("verdict", "flaky"),
        ("id", ""),
        ("started", "yesterday"),
        ("phases", {"call": -1}),
        ("phases", {"coffee": 1}),
        ("findings", [{"id": "f"}]),
        ("moments", {"admitted": "soon"}),
        ("surprise", 1),
        ("notes", "one"),
        ("absences", ["no such gate"]),
    ],
)
def test_what_breaks_the_schema_is_refused_and_the_message_names_the_test_and_the_field(field: str, value: Any) -> None:
    body = full_record().to_dict() | {field: value}
    with pytest.raises(ReportError, match=r"record of '.*': \$") as caught:
        check(body)
    assert field in str(caught.value)


@pytest.mark.parametrize("verdict", [Verdict.SKIPPED, Verdict.NOT_APPLICABLE, Verdict.KNOWN, Verdict.FIXED])
def test_these_verdicts_need_a_reason(verdict: Verdict) -> None:
    with pytest.raises(ReportError, match="reason"):
        encode(record(verdict=verdict))


def test_what_is_not_applicable_names_why() -> None:
    with pytest.raises(ReportError, match="absences"):
        encode(record(verdict=Verdict.NOT_APPLICABLE, reason="too new", absences=()))


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.KNOWN])
def test_a_finding_that_nothing_explains_contradicts_a_good_verdict(verdict: Verdict) -> None:
    with pytest.raises(ReportError, match="nothing explains finding no-survivors-1f3a"):
        encode(record(verdict=verdict, reason="r", findings=(finding(),)))


def test_an_explained_finding_and_a_part_of_one_go_with_a_pass() -> None:
    good = record(findings=(finding("expects"), finding(part_of="no-survivors-1f3a")))
    assert decode(encode(good)) == good
    assert [judged.raised for judged in good.findings] == [False, False]


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(ReportError, match="test_waits"):
        encode(record(moments={"admitted": float("nan")}))


@pytest.mark.parametrize("line", ["", "{", "[]", '"text"', "{}"])
def test_a_line_that_is_no_record_is_refused(line: str) -> None:
    with pytest.raises(ReportError):
        decode(line)


def test_times_are_written_in_utc_whatever_zone_they_come_in() -> None:
    at = datetime(2026, 11, 5, 12, 15, 2, 123456, tzinfo=timezone(timedelta(hours=2)))
    assert utc(at) == "2026-11-05T10:15:02.123Z"
    assert utc(at.astimezone(UTC)) == utc(at)


def test_a_suite_is_named_like_its_file() -> None:
    assert suite_of("suites/test_queueing.py::TestA::test_b[x/y.py]") == "queueing"
    assert suite_of("suites/deletion_policy.py::test_b") == "deletion_policy"


def test_all_phases_together_are_a_records_seconds() -> None:
    assert record(phases={"setup": 1.0, "judge": 0.5}).seconds == 1.5
    assert record(phases={}).seconds == 0
