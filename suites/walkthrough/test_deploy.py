"""Step 4 of the guide: deploy a RayJob, see it run and succeed, delete it."""

import pytest

from raykueue.run.states import Complete, Running

pytestmark = pytest.mark.queue("guide/kueue-resources-corrected.yaml")


@pytest.mark.smoke
def test_a_deployed_job_runs_on_what_is_booked_for_it(queue, submit):
    """A RayJob runs in a head and a submitter pod, which ask exactly what Kueue has booked for each PodSet."""
    job = submit("guide/rayjob.yaml").until(Running)

    assert job.running_pods == {"head": 1, "submitter": 1}
    assert job.pods == job.pod_sets
    assert job.pod_sets == {
        "head": {"cpu": 2, "memory": "8G", "nvidia.com/gpu": 1},
        "submitter": {"cpu": "500m", "memory": "200Mi"},
    }
    assert queue.booked == {"cpu": "2500m", "memory": 8209715200, "nvidia.com/gpu": 1}


@pytest.mark.smoke
def test_a_deployed_job_succeeds(queue, submit):
    """A RayJob whose Ray job succeeds becomes SUCCEEDED and Complete."""
    job = submit("guide/rayjob.yaml").until(Running).finish().until(Complete)

    assert job.job_status == "SUCCEEDED"
    assert job.deployment_status == "Complete"


def test_a_deleted_job_leaves_nothing(queue, submit):
    """After a completed RayJob is deleted nothing of it is left, and nothing is booked."""
    job = submit("guide/rayjob.yaml").until(Running).finish().until(Complete)

    job.delete().until_nothing_is_left()
    assert queue.booked == queue.reserved == {}
