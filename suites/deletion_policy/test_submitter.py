"""The submitter of a job that is over: its batch Job has retries of its own, the first after 10 s.

KubeRay lets the Job be. From Kueue 0.15.4 on, Kueue suspends it, as it does with all that a finished job has made.
"""

from raykueue.model.deletion.dimensions import Outcome
from raykueue.run.states import Running


def test_no_submitter_is_started_after_the_end(queue, submit):
    """A RayJob that has passed its deadline starts no submitter pod any more, for which nobody would pay."""
    job = submit("rayjob.yaml").until(Running)
    assert job.end(Outcome.DEADLINE_RUNNING).made(within=14) == []
