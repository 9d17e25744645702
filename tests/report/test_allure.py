from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from raykueue.model.findings import Verdict
from raykueue.report.allure import categories, environment, properties_text, write_allure
from raykueue.report.errors import ReportError
from raykueue.report.verdict import message
from tests.report.samples import record, report

STATUS = {
    Verdict.FAIL: ("failed", "raykueue.errors.FindingError: "),
    Verdict.FIXED: ("failed", "AssertionError: "),
    Verdict.INFRA: ("broken", "raykueue.errors.InfraError: "),
    Verdict.KNOWN: ("skipped", "XFAIL "),
    Verdict.SKIPPED: ("skipped", "Skipped: "),
    Verdict.NOT_APPLICABLE: ("skipped", "Skipped: "),
}


@pytest.mark.parametrize(
    ("verdict", "category"),
    [
        (Verdict.FAIL, "Product defects"),
        (Verdict.FIXED, "Recorded defects that no longer show"),
        (Verdict.INFRA, "Infrastructure: could not be found out"),
        (Verdict.KNOWN, "Known upstream defects"),
        (Verdict.NOT_APPLICABLE, "Not applicable to this pair or cluster"),
        (Verdict.SKIPPED, "Skipped"),
    ],
)
@pytest.mark.parametrize("word", [True, False])
def test_each_verdict_falls_into_exactly_one_category(verdict: Verdict, category: str, word: bool) -> None:
    status, prefix = STATUS[verdict]
    said = (prefix if word else "") + message(record(verdict=verdict, reason="it is known: so")) + "\n\nfixed: more"
    found = [
        each["name"]
        for each in categories()
        if status in each["matchedStatuses"] and re.fullmatch(each.get("messageRegex", "(?s).*"), said)
    ]
    assert found == [category]


def test_the_environment_has_every_version_and_nothing_empty() -> None:
    found = environment(report([]).run)
    assert {
        "kueue": "0.19.2",
        "kubernetes": "1.34.4",
        "etcd": "3.6.5",
        "tier": "control-plane",
    }.items() <= found.items()
    assert all(found.values())


def test_properties_are_plain_ascii_and_escaped_as_java_reads_them() -> None:
    text = properties_text({"suite commit": "a=b", "path": "C:\\x\ny", "sign": "é 😀"})
    assert text == "suite\\ commit=a=b\npath=C:\\\\x y\nsign=\\u00e9 \\ud83d\\ude00\n"


def test_both_files_are_written_beside_the_results(tmp_path: Path) -> None:
    write_allure(tmp_path / "allure-results", report([]).run)
    assert "kuberay=1.6.2\n" in (tmp_path / "allure-results" / "environment.properties").read_text()
    assert json.loads((tmp_path / "allure-results" / "categories.json").read_text()) == categories()


def test_a_file_in_the_place_of_the_results_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(ReportError, match="Allure's files can't be written"):
        write_allure(tmp_path / "results", report([]).run)
