"""The submitter of a job that is over: its batch Job has retries of its own, the first after 10 s.

KubeRay lets the Job be. Where Kueue suspends all that a finished job has made (gate `finished-child-suspended`), that
is the end of it. Elsewhere another submitter is started, and the ledger tells of a pod that nobody pays for.
"""

from raykueue.model.deletion.dimensions import Outcome
from raykueue.run.states import Running


def test_no_submitter_is_started_after_the_end(queue, submit):
    """A RayJob that has passed its deadline starts no submitter pod any more, for which nobody would pay."""
    job = submit("rayjob.yaml").until(Running)
    # Its cluster goes within 5 s, and with it the submitter; the Job tries again 10 s later, if it may.
    job.end(Outcome.DEADLINE_RUNNING).made(within=20)
