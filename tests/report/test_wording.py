from __future__ import annotations

from dataclasses import replace

import pytest

from raykueue.model.findings import Verdict
from raykueue.model.node_images import NODE_IMAGE
from raykueue.report.allure import environment
from raykueue.report.junit import junit_xml
from raykueue.report.summary import markdown
from raykueue.report.terminal import terminal
from raykueue.report.wording import (
    MEANING,
    commit_word,
    duration,
    one_line,
    pair_line,
    setting_line,
    tally,
    title,
)
from tests.report.samples import FACTS, record, report


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.0804, "80 ms"),
        (0.9996, "1.0 s"),
        (2.14, "2.1 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.7, "1 h 00 min"),
        (8040, "2 h 14 min"),
    ],
)
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_every_verdict_has_a_meaning() -> None:
    assert set(MEANING) == set(Verdict)


def test_rows_of_one_test_are_told_apart_by_their_parameters() -> None:
    assert title(record("t.py::test_a[x::y]", sentence="It works.")) == "It works [x::y]"


def test_a_test_without_a_sentence_is_called_by_its_name() -> None:
    assert title(record("suites/t.py::test_waits_in_line[row]", sentence="")) == "waits in line [row]"
    assert title(record("::", sentence=".")) == "(no sentence)"


def test_one_line_shortens_and_says_so() -> None:
    assert one_line("a\n\tb   c") == "a b c"
    assert one_line("x" * 20, 10) == "x" * 9 + "…"


def test_a_tally_names_what_occurs_the_important_first() -> None:
    each = [record(verdict=verdict) for verdict in (Verdict.PASS, Verdict.KNOWN, Verdict.PASS, Verdict.FAIL)]
    assert tally(each) == "1 fail, 1 known, 2 pass"


def test_a_commit_is_shortened_but_not_what_was_changed_beyond_it() -> None:
    assert commit_word("b" * 40) == "b" * 9
    assert commit_word("b" * 40 + "-dirty-0a1b2c3d4e5f") == "b" * 9 + "-dirty-0a1b2c3d4e5f"
    assert commit_word("") == "of unknown commit"


def test_a_report_says_which_kubernetes_ran_and_of_which_node_image() -> None:
    image = f"kindest/node:v1.34.11@sha256:{'ab' * 32}"
    kind = report([record()], facts=replace(FACTS, versions={"kubernetes": "1.34.11", NODE_IMAGE: image}))
    assert pair_line(kind.run) == "Kueue 0.19.2 + KubeRay 1.6.2 on Kubernetes 1.34.11"
    assert " cluster of kindest/node:v1.34.11@sha256:abababababab, tier" in setting_line(kind.run)
    assert environment(kind.run)["kubernetes"] == "1.34.11"
    for text in (terminal(kind, 120, colour=False), markdown(kind), junit_xml(kind)):
        assert "1.34.11" in text
        assert "1.34.4" not in text
    assert f"| node image | `{image}` |" in markdown(kind)


def test_where_nothing_ran_the_kubernetes_that_was_asked_for_is_told() -> None:
    one = report([record()], facts=replace(FACTS, versions={}))
    assert pair_line(one.run).endswith("on Kubernetes 1.34.4")
