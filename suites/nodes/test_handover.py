"""Quota that changes hands while pods of whoever had it still stop, which only real containers take time for."""

import pytest

from raykueue.run.states import Admitted, Complete, Evicted, Pending, Running

pytestmark = pytest.mark.tier("node")


def test_a_preempted_job_still_stops_while_the_next_one_has_its_quota(queue, submit, expects, measure):
    """The pods of a preempted RayJob take seconds to stop, after its quota was given to the preemptor."""
    dev = submit("rayjob.yaml", priority="dev-priority").until(Running)
    expects("no-survivors", "evicted/*", at_least_seconds=1, at_most_seconds="T_gc + 2 + g")

    prod = submit("rayjob.yaml", priority="prod-priority").until(Running)
    assert dev.was(Evicted("Preempted"))
    measure("scheduled after admitted", prod.placed() - prod.moment(Admitted))


def test_a_graceful_stop_lengthens_the_overlap(queue, submit, expects):
    """Pods whose preStop hook takes 8 s outlive their quota by as long, while the preemptor has it."""
    submit("rayjob.yaml", priority="dev-priority", stops_after=8).until(Running)
    expects("no-survivors", "evicted/*", at_least_seconds=6, at_most_seconds="T_gc + 2 + g")
    expects("no-overlap", "evicted/*", at_least_seconds=4, at_most_seconds="T_gc + 2 + g")

    submit("rayjob.yaml", priority="prod-priority").until(Running)


def test_a_finished_jobs_cluster_stays_beside_the_next_job(queue, submit, expects):
    """While ttlSecondsAfterFinished keeps a finished RayJob's cluster, the next job runs on the same quota."""
    first = submit("rayjob-ttl.yaml").until(Running)
    second = submit("rayjob-ttl.yaml", later_than=first).until(Pending)
    expects("no-survivors", "finished/clean-up", at_least_seconds=9)
    expects("no-overlap", "finished/clean-up", at_least_seconds=5)

    first.finish().until(Complete)
    second.until(Running)
