"""Which job belongs to which head, RayJob and submitter, where names alone don't tell."""

from __future__ import annotations

import itertools
from typing import Any

from raykueue.ray.simulated.instructions import Instructions
from raykueue.ray.simulated.jobs import Ending, JobStatus
from raykueue.ray.simulated.objects import read_head, read_rayjob, read_submitter, submitter_job
from raykueue.ray.simulated.simulation import EndSubmitter, Simulation
from tests.ray.fake_api import head, rayjob, submitter


def simulation(*objects: dict[str, Any]) -> tuple[Simulation, list[EndSubmitter]]:
    """One that has seen `objects` in this order, and what it ended meanwhile."""
    made = Simulation(now=itertools.count(1).__next__)
    return made, [end for found in objects for end in see(made, found)]


def see(made: Simulation, found: dict[str, Any]) -> list[EndSubmitter]:
    if "submissionMode" in found["spec"]:
        return made.rayjob_seen(read_rayjob(found))
    if job := submitter_job(found):
        running = read_submitter(found)
        assert running is not None
        return made.submitter_seen(job, running)
    view = read_head(found)
    assert view is not None
    return made.head_seen(view)


def test_the_order_in_which_objects_are_seen_does_not_matter() -> None:
    objects = (rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a", job_id="a-1"))
    for order in itertools.permutations(objects):
        made, _ = simulation(*order)
        job = made.find("ns", "c-head-svc", "a-1")
        assert job is not None
        assert job.status is JobStatus.RUNNING


def test_the_same_submission_id_on_two_clusters_is_two_jobs() -> None:
    made, _ = simulation(
        *(rayjob("a", job_id="mine", cluster="c"), head("c"), submitter("a", job_id="mine")),
        *(rayjob("b", job_id="mine", cluster="d"), head("d"), submitter("b", job_id="mine")),
    )
    ends = Instructions(made).finish("ns", "a", Ending())
    assert [end.submitter.pod for end in ends] == ["a-1"]
    a, b = made.find("ns", "c-head-svc", "mine"), made.find("ns", "d-head-svc", "mine")
    assert a is not None
    assert b is not None
    assert (a.status, b.status) == (JobStatus.SUCCEEDED, JobStatus.RUNNING)


def test_a_head_service_may_have_a_name_of_its_users_choice() -> None:
    named = rayjob("a", job_id="a-1", cluster="c")
    named["status"]["dashboardURL"] = "special.ns.svc.cluster.local:8265"
    made, _ = simulation(named, head("c"), submitter("a"))
    assert made.find("ns", "special", "a-1") is not None
    assert made.find("other", "special", "a-1") is None


def test_a_submitter_of_an_earlier_attempt_submits_nothing() -> None:
    made, _ = simulation(rayjob("a", job_id="a-2", cluster="c"), head("c"), submitter("a", job_id="a-1"))
    assert made.find("ns", "c-head-svc", "a-2") is None


def test_a_submitter_pod_that_comes_after_the_end_ends_at_once() -> None:
    made, _ = simulation(rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))
    Instructions(made).finish("ns", "a", Ending(exit_code=1))
    made.submitter_gone("ns", "a", "pod-a-1")
    (end,) = see(made, submitter("a", n=2))
    assert (end.submitter.pod, end.exit_code) == ("a-2", 0)


def test_a_submitter_is_told_to_end_once_and_again_only_if_that_failed() -> None:
    made, _ = simulation(rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))
    (end,) = Instructions(made).finish("ns", "a", Ending())
    assert see(made, submitter("a")) == []
    made.submitter_ended(end, done=False)
    assert see(made, submitter("a")) == [end]
    made.submitter_ended(end, done=True)
    assert see(made, submitter("a")) == []
    assert end.job is not None
    assert end.job.submitter_ended is not None


def test_a_pod_of_a_foreign_job_or_of_a_dying_submitter_submits_nothing() -> None:
    made, _ = simulation(rayjob("a", mode="HTTPMode", job_id="a-1", cluster="c"), head("c"), submitter("a"))
    assert made.find("ns", "c-head-svc", "a-1") is None
    dying = submitter("a")
    dying["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z"
    assert read_submitter(dying) is None


def test_a_rayjob_created_anew_under_its_old_name_starts_from_nothing() -> None:
    made, _ = simulation(rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))
    see(made, rayjob("a", uid="second"))
    assert Instructions(made).state("ns", "a")["runs"] == 0
