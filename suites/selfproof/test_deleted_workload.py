import pytest

from raykueue.run.states import Running, Suspended


@pytest.mark.queue("queue-large.yaml")
def test_pods_that_outlive_a_deleted_workload_are_found(queue, submit, sabotage, expects):
    """Pods that take 5 s to stop after their Workload was deleted by hand are reported; the job runs again."""
    job = submit("rayjob.yaml", stops_after=5).until(Running)
    sabotage.delete_workload(job)
    expects("no-survivors", "workload-deleted", at_least_seconds=3, at_most_seconds=15)

    job.until(Suspended).until(Running)
