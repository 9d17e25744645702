from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given, settings
from hypothesis import strategies as st

from raykueue.model.findings import Verdict
from raykueue.report.junit import junit_xml
from raykueue.report.record import Record
from tests.report.samples import full_record, mixed_records, record, report
from tests.report.strategies import records


def parsed(xml: str) -> ET.Element:
    return ET.fromstring(xml.encode())  # noqa: S314 - our own text


def cases(xml: str) -> list[ET.Element]:
    return list(parsed(xml).iter("testcase"))


def test_each_verdict_has_its_element_and_says_itself() -> None:
    each = [record(f"a/t.py::{verdict}", verdict=verdict, reason="why") for verdict in Verdict]
    outcomes = {}
    for case in cases(junit_xml(report(each))):
        found = [(child.tag, child.get("message")) for child in case if child.tag != "properties"]
        outcomes[case.get("name")] = found
    assert outcomes == {
        "pass": [],
        "fail": [("failure", "fail: why")],
        "known": [("skipped", "known: why")],
        "fixed": [("failure", "fixed: why")],
        "infra": [("error", "infra: why")],
        "skipped": [("skipped", "skipped: why")],
        "not-applicable": [("skipped", "not-applicable: why")],
    }


def test_the_totals_are_those_of_the_records() -> None:
    root = parsed(junit_xml(report(mixed_records())))
    suite = root.find("testsuite")
    assert suite is not None
    for element in (root, suite):
        found = {key: element.get(key) for key in ("tests", "failures", "errors", "skipped", "time")}
        assert found == {"tests": "6", "failures": "1", "errors": "1", "skipped": "2", "time": "68.500"}


def test_a_run_has_its_pair_and_versions_as_properties() -> None:
    root = parsed(junit_xml(report([record()])))
    found = {p.get("name"): p.get("value") for p in root.findall("testsuite/properties/property")}
    assert {"kueue": "0.19.2", "kuberay": "1.6.2", "etcd": "3.6.5", "profile": "core"}.items() <= found.items()


def test_a_case_has_its_requirement_its_evidence_and_what_was_measured() -> None:
    (case,) = cases(junit_xml(report([full_record()])))
    found = {p.get("name"): p.get("value") for p in case.findall("properties/property")}
    assert found["requirement"] == "A job waits while its queue is full"
    assert found["journal"] == "journals/test_waits.jsonl.gz"
    assert found["admitted ms"] == "12.5"
    assert (case.get("classname"), case.get("name"), case.get("time")) == (
        "suites.test_queueing",
        "test_waits",
        "2.010",
    )
    failure = case.find("failure")
    assert failure is not None
    assert (failure.text or "").count("2 pods of RayJob t-7/train lived") == 1


@settings(deadline=None, max_examples=40)
@given(st.lists(records(), max_size=3))
def test_it_is_well_formed_whatever_the_records_contain(each: list[Record]) -> None:
    assert len(cases(junit_xml(report(each)))) == len(each)
