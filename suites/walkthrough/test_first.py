from raykueue.run.states import Admitted, Complete, Running


def test_a_queued_rayjob_is_admitted_runs_and_completes(queue, submit):
    """A queued RayJob is admitted, runs, and completes when its Ray job succeeds."""
    job = submit("rayjob.yaml").until(Running)
    assert queue.booked == job.charged
    job.finish().until(Complete)
    assert job.job_status == "SUCCEEDED"
    assert job.moment(Admitted) < job.moment(Running)
