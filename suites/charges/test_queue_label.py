"""Whoever runs on quota can't leave its queue."""

from raykueue.run.states import Complete, Running


def test_a_job_without_its_label_is_charged_to_its_end_and_no_longer(queue, submit):
    """A RayJob that runs is charged until it ends, whether or not the label of its queue can be taken off."""
    job = submit("rayjob.yaml").until(Running)

    job.leave_queue()
    job.finish().until(Complete)
    queue.outlast_idle_quota()
