"""Rule `no-survivors`: pods that are made while nobody pays for their job, told apart by what made them."""

from __future__ import annotations

import pytest

from tests.audit.journals import Journal
from tests.audit.test_no_survivors import only, running, suspended


@pytest.fixture
def j() -> Journal:
    return Journal(about=("no-survivors",))


def test_a_pod_born_after_the_release_breaks_a_promise_if_it_stays(j: Journal) -> None:
    a = running(j)
    suspended(a)
    a.workload.release()
    j.at(0)
    a.pod("head")
    assert only(j.findings(until=5)).klass == "hazard"
    assert only(j.findings(until=5.1)).klass == "contract"


def test_a_pod_whose_cluster_is_deleted_only_after_its_birth(j: Journal) -> None:
    a = running(j)
    old = a.pod("head")
    j.at(0)
    old.gone()
    a.state("Complete", "SUCCEEDED")
    a.workload.finish("Succeeded")
    j.at(1)
    again = a.pod("head", "2")
    a.stop_cluster()
    j.at(2)
    again.gone()
    assert only(j.findings(until=20)).cause == "born-after-release"


def test_a_stray_pod_beside_one_made_for_a_cluster_that_is_gone_is_told_apart(j: Journal) -> None:
    a = running(j)
    old, cluster = a.pod("head"), a.cluster
    j.at(0)
    old.gone()
    suspended(a)
    a.workload.release()
    a.cluster = cluster
    j.at(1)
    orphan = a.pod("head", "2")
    a.start_cluster()
    stray = a.pod("head", "3")
    j.at(2)
    orphan.gone()
    j.at(3)
    stray.gone()
    findings = j.findings(until=20)
    assert [(f.cause, f.seconds[0]) for f in findings if f.rule == "no-survivors"] == [
        ("made-for-a-deleted-owner", 1.0),
        ("born-after-release", 2.0),
    ]


@pytest.mark.parametrize("seconds", [0.2, 8.0])
def test_a_submitter_that_is_started_after_its_jobs_end_is_found_and_one_from_before_is_not(
    j: Journal, seconds: float
) -> None:
    a = running(j)
    pods = [a.pod("head"), a.pod("submitter")]
    j.at(0)
    pods[0].gone()
    pods[1].end("Failed")
    a.state("Failed", "RUNNING")
    a.workload.finish("Failed")
    assert j.findings(until=11) == []
    j.at(12)
    again = a.pod("submitter", "2")
    j.at(12 + seconds)
    again.gone()
    found = only(j.findings(until=30))
    assert (found.cause, found.klass) == ("born-after-release", "hazard" if seconds < 5 else "contract")
    assert (found.peak, found.objects[-1].name) == ({"cpu": 500}, "a-submitter-2")
