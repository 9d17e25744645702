"""Whoever runs on quota can't leave its queue."""

import pytest

from raykueue.run.states import Complete, Running


def test_a_job_without_its_label_is_charged_to_its_end_and_no_longer(queue, submit):
    """A RayJob that runs is charged until it ends, whether or not the label of its queue can be taken off."""
    job = submit("rayjob.yaml").until(Running)

    job.leave_queue()
    job.finish().until(Complete)
    queue.outlast_idle_quota()


@pytest.mark.needs("queue-label-kept")
def test_a_running_job_can_not_leave_its_queue(queue, submit):
    """Whoever takes the label of its queue off a RayJob that runs is refused, and the job stays charged."""
    job = submit("rayjob.yaml").until(Running)

    assert not job.leave_queue()
    assert job.charged
