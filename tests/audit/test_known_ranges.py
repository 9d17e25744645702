"""Known issues stand for what the tests may show on a pair, and for no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from raykueue.audit.explanations import KnownIssue, of_pair
from raykueue.audit.judge import judge
from raykueue.audit.rules import RULES
from raykueue.audit.thresholds import Thresholds
from raykueue.model.deletion.laws import expected
from raykueue.model.deletion.selection import full
from raykueue.model.findings import Verdict
from raykueue.model.gates import gate
from raykueue.run.explanations import allowances, known_issues
from raykueue.toolchain.lock import load_versions
from tests.audit.journals import Journal

PAIRS = [pytest.param(one.versions(), id=f"{one.kueue}-{one.kuberay}") for one in load_versions().pairs]
REFUSED = "suites/deletion_policy/test_table.py::test_policy[delete-none-on-success-queued-k8sjob]"
SUBMITTER = "suites/deletion_policy/test_submitter.py::test_no_submitter_is_started_after_the_end"


def issue(name: str) -> KnownIssue:
    (found,) = [one for one in known_issues() if one.id == name]
    return found


@pytest.mark.parametrize("pair", PAIRS)
def test_rows_whose_quota_may_be_kept_are_those_that_the_issue_names(pair: Mapping[str, str]) -> None:
    rows = {f"suites/deletion_policy/test_table.py::test_policy[{row.id}]": expected(row, pair) for row in full(pair)}
    applies = {test: about for test, about in rows.items() if all(gate(name).open_for(pair) for name in about.needs)}
    kept = {test for test, about in applies.items() if not about.released}
    named = {test for test in applies if issue("invalid-job-keeps-its-quota").concerns(test, pair)}
    assert kept == named


@pytest.mark.parametrize("pair", PAIRS)
def test_no_row_that_is_not_queued_must_show_what_only_the_books_can_tell(pair: Mapping[str, str]) -> None:
    rules = {one.name for one in RULES}
    unqueued = [f"suites/deletion_policy/test_table.py::test_policy[{row.id}]" for row in full(pair) if not row.queued]
    assert unqueued
    always = [one for one in known_issues() if one.occurs == "always" and one.rule in rules]
    assert [(one.id, test) for one in always for test in unqueued if one.concerns(test, pair)] == []


@pytest.mark.parametrize("pair", PAIRS)
def test_a_submitter_is_started_again_where_kueue_suspends_no_child(pair: Mapping[str, str]) -> None:
    assert of_pair(issue("submitter-started-after-the-end"), pair) is not gate("finished-child-suspended").open_for(
        pair
    )


def started_again(j: Journal) -> None:
    """A submitter that fails after its job's end, and is started again 12 s later."""
    a = j.at(-20).job("a", j.queue())
    a.workload.admit()
    pods = a.start()
    a.state("Running", "RUNNING")
    j.at(0)
    for pod in pods:
        pod.end("Failed")
    a.state("Failed", "RUNNING")
    a.workload.finish("Failed")
    j.at(12)
    pod = a.pod("submitter", "again")
    j.at(12.2)
    pod.gone()


def kept(j: Journal) -> None:
    """A job that is admitted and then invalid, and that is deleted 11 s later."""
    a = j.at(0).job("a", j.queue())
    a.workload.admit()
    a.suspend(False)
    a.state("ValidationFailed")
    j.at(11)
    a.terminate()
    a.gone()
    a.workload.gone()


@pytest.mark.parametrize(
    ("story", "test", "name", "since", "fixed"),
    [
        (started_again, SUBMITTER, "submitter-started-after-the-end", "0.14.0", "0.15.0"),
        (kept, REFUSED, "invalid-job-keeps-its-quota", "0.18.3", "0.19.2"),
    ],
)
def test_what_shows_is_known_where_it_is_so_and_fails_where_it_is_mended(
    story: Callable[[Journal], None], test: str, name: str, since: str, fixed: str
) -> None:
    for kueue, verdict in ((since, Verdict.KNOWN), (fixed, Verdict.FAIL)):
        j = Journal(pair={"kueue": kueue, "kuberay": "1.6.2", "kubernetes": "1.34.4"}, about=(issue(name).rule,))
        story(j)
        found = judge(
            j.findings(until=30),
            [],
            known_issues(),
            allowances(),
            test=test,
            pair=j.pair,
            thresholds=Thresholds(),
            names={"g": 0.0, "ttl": 0.0},
        )
        assert found.verdict is verdict, found.text()
        assert found.shown == ({name} if verdict is Verdict.KNOWN else set())
