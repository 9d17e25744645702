"""A report as JUnit XML, the format that every CI system reads: one testcase per record. Pure.

Written from the records, because pytest's own writer loses properties of the suite under xdist and knows neither
known defects nor what isn't applicable.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from raykueue.model.findings import Verdict
from raykueue.report.record import PHASES, Record
from raykueue.report.run_info import LoadedReport, RunInfo
from raykueue.report.verdict import message
from raykueue.report.wording import pair_line, title

# What XML 1.0 allows: https://www.w3.org/TR/xml/#charsets
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_FAILURES = (Verdict.FAIL, Verdict.FIXED)
_SKIPPED = (Verdict.SKIPPED, Verdict.NOT_APPLICABLE, Verdict.KNOWN)


def junit_xml(report: LoadedReport) -> str:
    """The text of junit.xml: well-formed whatever the records contain.

    fail and fixed are a `failure`, infra is an `error`, skipped, not-applicable and known are `skipped`; messages
    begin with the verdict.
    """
    run, records = report.run, report.records
    totals = {
        "tests": str(len(records)),
        "failures": str(sum(record.verdict in _FAILURES for record in records)),
        "errors": str(sum(record.verdict is Verdict.INFRA for record in records)),
        "skipped": str(sum(record.verdict in _SKIPPED for record in records)),
        "time": f"{max(run.wall_seconds, 0.0):.3f}",
    }
    root = ET.Element("testsuites", {"name": "raykueue", **totals})
    suite = ET.SubElement(
        root, "testsuite", {"name": _clean(pair_line(run)), "timestamp": run.started.removesuffix("Z"), **totals}
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _run_properties(run).items():
        _property(properties, name, value)
    for record in records:
        suite.append(_case(record))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _run_properties(run: RunInfo) -> dict[str, str]:
    facts = run.facts
    return {
        **run.pair,
        **facts.versions,
        "tier": facts.tier,
        "backend": run.backend,
        "profile": facts.profile,
        "versions digest": facts.lock_digest,
        "suite": facts.suite_version,
        "suite commit": facts.commit,
        "exit code": str(run.exit_code),
    }


def _case(record: Record) -> ET.Element:
    path, _, name = record.id.partition("::")
    case = ET.Element(
        "testcase",
        {
            "classname": _clean(path.removesuffix(".py").replace("/", ".")),
            "name": _clean(name or record.id),
            "time": f"{record.seconds:.3f}",
        },
    )
    properties = ET.SubElement(case, "properties")
    _property(properties, "id", record.id)
    _property(properties, "requirement", title(record))
    _property(properties, "verdict", record.verdict.value)
    _property(properties, "journal", record.journal)
    _property(properties, "reproduce", record.reproduce)
    for phase in PHASES:
        if phase in record.phases:
            _property(properties, f"{phase} seconds", f"{record.phases[phase]:.3f}")
    for name, milliseconds in record.moments.items():
        _property(properties, f"{name} ms", f"{milliseconds:.1f}")
    outcome = _outcome(record)
    if outcome is not None:
        case.append(outcome)
    return case


def _outcome(record: Record) -> ET.Element | None:
    attributes = {"message": _clean(message(record))}
    if record.verdict in _SKIPPED:
        return ET.Element("skipped", attributes)
    if record.verdict is Verdict.PASS:
        return None
    tag = "failure" if record.verdict in _FAILURES else "error"
    outcome = ET.Element(tag, {**attributes, "type": record.verdict.value})
    told = [f"{each.finding.rule}: {each.finding.text}" for each in record.findings if each.raised]
    outcome.text = _clean("\n".join([record.failure or record.reason, *told]))
    return outcome


def _property(properties: ET.Element, name: str, value: str) -> None:
    if value:
        ET.SubElement(properties, "property", {"name": _clean(name), "value": _clean(value)})


def _clean(text: str) -> str:
    return _NOT_XML.sub("", text)
