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
    assert queue.booked == {}


def test_a_head_that_runs_out_of_memory(queue, submit, sabotage):
    """A RayJob whose head is killed for its memory."""
    job = submit("rayjob-head-only.yaml").until(Running)
    sabotage.exhaust_memory(job)
    job.until_said("OOMKilled")
