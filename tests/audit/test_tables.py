from __future__ import annotations

import datetime
from importlib import resources

import pytest

from raykueue.audit.explanations import Allowance, KnownIssue, of_pair, overdue
from raykueue.audit.tables import read_allowances, read_known_issues
from raykueue.model.gates import gate
from raykueue.run.explanations import allowances, known_issues
from raykueue.toolchain.lock import load_versions

ISSUE = """
[[issue]]
id = "sidecar"
link = "https://github.com/kubernetes-sigs/kueue/issues/1"
kueue = [{ before = "0.17.7" }, { since = "0.18.0", before = "0.18.3" }]
tests = ["suites/test_modes.py::*sidecar*"]
rule = "pods-covered"
cause = "under-count"
occurs = "always"
review = 2027-01-31
evidence = "sidecar.jsonl.gz"
[issue.bounds]
at_most_seconds = "T_gc + g"
at_least = { cpu = "500m" }
"""

ALLOW = """
[[allow]]
id = "retry"
rule = "pods-covered"
cause = "extra-pods"
why = "a retry waits for the object only"
bounds = { at_most_seconds = "T_gc + g" }
"""


def test_a_known_issue_is_read_with_its_versions_bounds_and_tests() -> None:
    (issue,) = read_known_issues(ISSUE)
    assert issue.id == "sidecar"
    assert issue.bounds.at_least == {"cpu": 500}
    assert issue.review == datetime.date(2027, 1, 31)
    old, new = {"kueue": "0.18.2", "kuberay": "1.6.2"}, {"kueue": "0.18.3", "kuberay": "1.6.2"}
    assert issue.concerns("suites/test_modes.py::test_sidecar[a]", old)
    assert not issue.concerns("suites/test_modes.py::test_sidecar[a]", new)
    assert not issue.concerns("suites/test_modes.py::test_http", old)


def test_an_entry_may_name_gates_instead_of_the_versions_that_have_them_or_lack_them() -> None:
    text = ISSUE.replace('kueue = [{ before = "0.17.7" }, { since = "0.18.0", before = "0.18.3" }]', "{}")
    lacking = 'lacks = ["sidecar-submitter-charged"]\nneeds = ["submitter-pod-set", "sidecar-mode"]'
    (issue,) = read_known_issues(text.replace("{}", lacking))

    def concerns(kueue: str, kuberay: str = "1.6.2") -> bool:
        return issue.concerns("suites/test_modes.py::test_sidecar[a]", {"kueue": kueue, "kuberay": kuberay})

    assert [concerns(version) for version in ("0.9.5", "0.10.0", "0.17.6", "0.17.7", "0.18.2", "0.18.3")] == [
        False,
        True,
        True,
        False,
        True,
        False,
    ]
    assert not concerns("0.18.2", kuberay="1.4.2")
    (narrower,) = read_known_issues(text.replace("{}", f'{lacking}\nkueue = [{{ since = "0.18.0" }}]'))
    assert str(narrower.kueue[0]) == ">= 0.18.0 and < 0.18.3"
    (wider,) = read_known_issues(text.replace("{}", 'needs = ["sidecar-mode"]'))
    assert wider.kueue == ()


def test_an_entry_past_its_review_date_is_overdue() -> None:
    issues = read_known_issues(ISSUE)
    assert overdue(issues, datetime.date(2027, 1, 31)) == []
    assert overdue(issues, datetime.date(2027, 2, 1)) == issues


@pytest.mark.parametrize(
    ("wrong", "right", "told"),
    [
        ('occurs = "always"', 'occurs = "never"', "number 1 (sidecar) occurs"),
        ('rule = "pods-covered"', "", "number 1 (sidecar): 'rule' is a required"),
        ('"T_gc + g"', '"T_gc + grace"', "the names are"),
        ('"500m"', '"half"', "not a Kubernetes quantity"),
        ('before = "0.17.7"', 'before = "latest"', "not a version"),
        ("review = 2027-01-31", 'review = "soon"', "review"),
        ("[[issue]]", "[[issues]]", "at the top"),
        ('cause = "under-count"', "cause = ", "is not TOML"),
        ('evidence = "sidecar.jsonl.gz"', "colour = 1", "colour"),
        ("review = 2027-01-31", 'review = 2027-01-31\nneeds = ["no-such-gate"]', "no gate 'no-such-gate'; there are"),
        (
            "review = 2027-01-31",
            'review = 2027-01-31\nneeds = ["sidecar-submitter-charged"]',
            "no version of kueue has what it asks for",
        ),
    ],
)
def test_a_malformed_entry_is_refused_with_its_place(wrong: str, right: str, told: str) -> None:
    with pytest.raises(ValueError) as error:
        read_known_issues(ISSUE.replace(wrong, right), "known-issues.toml")
    assert "known-issues.toml" in str(error.value)
    assert told in str(error.value)


def test_an_id_may_stand_only_once() -> None:
    with pytest.raises(ValueError, match=r"number 2 .*another 'retry'"):
        read_allowances(ALLOW + ALLOW)


def test_an_allowance_without_an_upper_bound_of_time_is_refused() -> None:
    with pytest.raises(ValueError, match="at_most_seconds"):
        read_allowances(ALLOW.replace('at_most_seconds = "T_gc + g"', 'at_most = { cpu = "1" }'))


def test_the_projects_own_files_are_valid() -> None:
    package = resources.files("raykueue")
    allowances = read_allowances(package.joinpath("allowances.toml").read_text(encoding="utf-8"))
    assert "second-cluster-or-submitter" in {row.id for row in allowances}
    read_known_issues(package.joinpath("known-issues.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kueue", sorted({*load_versions().named_by, "0.15.2", "0.15.3", "0.15.4", "0.16.0", "0.16.1"}))
@pytest.mark.parametrize("rule", ["no-survivors", "no-overlap"])
def test_a_head_that_is_kept_is_either_suspended_by_kueue_or_a_known_issue(kueue: str, rule: str) -> None:
    pair = {"kueue": kueue, "kuberay": "1.6.2"}
    rows: list[Allowance | KnownIssue] = [*allowances(), *known_issues()]
    kept = [row for row in rows if (row.rule, row.cause) == (rule, "finished/head-kept")]
    (explains,) = [row for row in kept if of_pair(row, pair)]
    assert isinstance(explains, Allowance) is gate("finished-child-suspended").open_for(pair)


def test_a_deleted_job_may_be_admitted_wherever_orphans_are_finished() -> None:
    (issue,) = [one for one in known_issues() if one.id == "deleted-while-it-is-admitted"]
    assert issue.kueue == gate("orphans-finished").ranges
