"""Step 5 of the guide: three RayJobs in a queue with room for one."""

import pytest

from raykueue.run.states import Admitted, Complete, Pending, Running

pytestmark = pytest.mark.queue("guide/kueue-resources-corrected.yaml")


def test_one_of_three_jobs_is_admitted_and_two_wait(queue, submit):
    """Of three RayJobs that each need the whole quota one is admitted, and the books say exactly that."""
    first = submit("guide/rayjob.yaml").until(Running)
    second = submit("guide/rayjob.yaml", later_than=first).until(Pending)
    submit("guide/rayjob.yaml", later_than=second).until(Pending)

    assert queue.counts(pending=2, reserving=1, admitted=1) == {"pending": 2, "reserving": 1, "admitted": 1}
    assert queue.reserved == {"cpu": "2500m", "memory": 8209715200, "nvidia.com/gpu": 1}
    assert queue.booked == {"cpu": "2500m", "memory": 8209715200, "nvidia.com/gpu": 1}
    assert "insufficient unused quota" in second.waits_because()


def test_the_queue_drains_in_order_of_creation(queue, submit):
    """RayJobs of equal priority are admitted in the order in which they were created, each after the one before."""
    first = submit("guide/rayjob.yaml").until(Running)
    second = submit("guide/rayjob.yaml", later_than=first).until(Pending)
    third = submit("guide/rayjob.yaml", later_than=second).until(Pending)

    for job in (first, second, third):
        job.until(Running).finish().until(Complete)
    assert first.moment(Complete) < second.moment(Admitted)
    assert second.moment(Complete) < third.moment(Admitted)
    assert queue.peak_charged <= queue.quota
