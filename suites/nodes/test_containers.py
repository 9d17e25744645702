"""What becomes of a queued RayJob whose containers can't be started, or are killed."""

import pytest

from raykueue.run.states import Failed, Initializing, Running

pytestmark = pytest.mark.tier("node")


def test_an_image_that_can_not_be_pulled_holds_quota_until_the_deadline(queue, submit):
    """A RayJob whose image nobody serves holds its quota while it is tried, and gives it back at its deadline."""
    job = submit("rayjob-no-such-image.yaml").until(Initializing).until_said("ErrImagePull")
    assert queue.booked == job.charged

    assert job.until(Failed).said.startswith('jobDeploymentStatus "Failed"')
    assert "DeadlineExceeded" in job.said
    assert queue.until_set_aside().booked == {}


def test_the_books_are_right_after_a_head_ran_out_of_memory(queue, submit, sabotage):
    """When the head of a running RayJob is killed for its memory, Kueue books what the job is charged, and no more."""
    job = submit("rayjob-head-only.yaml").until(Running)
    sabotage.exhaust_memory(job)
    job.until_said("OOMKilled")
    assert queue.booked == job.charged
