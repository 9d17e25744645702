"""Who is refused runs nothing, and may not keep others from running."""

import pytest

from raykueue.run.queue import UNTOLD_SECONDS


# Where KubeRay writes into the status that a job is invalid, rows of the deletion table end so; and where a new job
# counts as active, it gets no quota before KubeRay has suspended it, which it never does.
@pytest.mark.lacks("validation-failed")
@pytest.mark.needs("workload-made-at-once")
def test_a_job_that_is_refused_by_an_event_alone_keeps_no_quota(queue, submit):
    """A RayJob that KubeRay refuses, which only an event says, does not hold quota for ever."""
    submit("rayjob-refused.yaml")

    queue.outlast_idle_quota(UNTOLD_SECONDS)
