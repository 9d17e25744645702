from __future__ import annotations

import pytest

from raykueue.model.deletion.suspended_clean_up import suspended_clean_up
from tests.model.deletion.test_observed import Story

GOING = {"deletionTimestamp": "1970-01-01T00:16:41Z", "finalizers": ["ray.io/gcs-ft-redis-cleanup-finalizer"]}


def story(*, suspended: float = 1.5, until: float = 9.0, going: bool = True) -> Story:
    told = Story()
    told.see("RayJob", "job", status={"jobDeploymentStatus": "Running"})
    told.see("RayCluster", "cluster", "job")
    told.ends()
    if going:
        told.see("RayCluster", "cluster", "job", 1.0, metadata=GOING)
    told.see("Job", "clean", "cluster", 1.1, spec={"suspend": False})
    told.see("Job", "clean", "cluster", suspended, spec={"suspend": True})
    told.see("RayCluster", "cluster", "job", until, "DELETED", metadata=GOING)
    return told


def test_a_cluster_that_waits_for_a_suspended_job_is_found() -> None:
    finding = suspended_clean_up(story().events, "job")
    assert finding is not None
    assert (finding.rule, finding.cause, finding.seconds) == ("cleaned-up", "clean-up-suspended", (7.5, 7.5))
    assert [one.name for one in finding.objects] == ["cluster", "clean"]
    assert "kept for 7500 ms by its finalizer" in finding.text


def test_it_is_found_while_it_still_waits() -> None:
    told = story()
    told.events.pop()
    told.see("RayJob", "job", at=20.0, status={"jobDeploymentStatus": "Complete"})
    finding = suspended_clean_up(told.events, "job")
    assert finding is not None
    assert finding.seconds == (18.5, 18.5)


def resumed() -> Story:
    told = story()
    told.events.pop()
    told.see("Job", "clean", "cluster", 3.0, spec={"suspend": False})
    told.see("RayCluster", "cluster", "job", 9.0, "DELETED", metadata=GOING)
    return told


def test_it_is_found_if_it_is_suspended_again_for_good() -> None:
    told = resumed()
    told.events.pop()
    told.see("Job", "clean", "cluster", 4.0, spec={"suspend": True})
    told.see("RayCluster", "cluster", "job", 12.0, "DELETED", metadata=GOING)
    finding = suspended_clean_up(told.events, "job")
    assert finding is not None
    assert finding.seconds == (8.0, 8.0)


def resumed_before_the_cluster_goes() -> Story:
    told = story(going=False)
    told.events.pop()
    told.see("Job", "clean", "cluster", 2.0, spec={"suspend": False})
    told.see("RayCluster", "cluster", "job", 3.0, metadata=GOING)
    told.see("RayCluster", "cluster", "job", 12.0, "DELETED", metadata=GOING)
    return told


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(story(until=4.0), id="the cluster is gone in time"),
        pytest.param(story(going=False), id="the cluster was not deleted"),
        pytest.param(resumed(), id="the job is resumed"),
        pytest.param(resumed_before_the_cluster_goes(), id="the job is resumed before the cluster is deleted"),
    ],
)
def test_nothing_is_found_where(told: Story) -> None:
    assert suspended_clean_up(told.events, "job") is None


def test_nothing_is_found_of_another_job() -> None:
    assert suspended_clean_up(story().events, "other") is None
