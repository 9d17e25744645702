"""Step 6 of the guide: a RayJob of higher priority takes the quota."""

import pytest

from raykueue.run.states import Admitted, Complete, Evicted, Pending, Requeued, Running, Suspended

pytestmark = pytest.mark.queue("guide/kueue-resources-corrected.yaml")


@pytest.mark.smoke
def test_prod_takes_the_quota_of_a_running_dev_job(queue, submit):
    """A prod RayJob evicts a running dev RayJob, which later runs again and succeeds."""
    dev = submit("guide/rayjob.yaml", priority="dev-priority").until(Running)
    prod = submit("guide/rayjob.yaml", name="prod-pytorch-text-classifier", priority="prod-priority").until(Running)

    assert dev.story() == [Admitted, Running, Evicted("Preempted"), Suspended, Requeued]
    assert dev.moment(Suspended) < prod.moment(Admitted)
    assert queue.booked == prod.charged

    prod.finish()
    dev.until(Running).finish().until(Complete)
    assert dev.job_status == "SUCCEEDED"
    assert queue.peak_booked <= queue.quota
    assert queue.peak_charged <= queue.quota


def test_prod_does_not_evict_prod(queue, submit):
    """A RayJob of equal priority waits for the running one."""
    first = submit("guide/rayjob.yaml", priority="prod-priority").until(Running)
    second = submit("guide/rayjob.yaml", priority="prod-priority", later_than=first).until(Pending)

    assert "insufficient unused quota" in second.waits_because()
    first.finish().until(Complete)
    second.until(Running)
    assert not first.was(Evicted)


def test_prod_overtakes_pending_dev_jobs(queue, submit):
    """A prod RayJob is admitted before dev RayJobs that were created earlier and still wait."""
    running = submit("guide/rayjob.yaml", priority="dev-priority").until(Running)
    waiting = submit("guide/rayjob.yaml", priority="dev-priority", later_than=running).until(Pending)
    prod = submit("guide/rayjob.yaml", priority="prod-priority", later_than=waiting).until(Running)

    prod.finish().until(Complete)
    running.until(Running).finish().until(Complete)
    waiting.until(Running)
    assert running.was(Evicted)
    assert not waiting.was(Evicted)
    assert prod.moment(Admitted) < running.moment(Admitted) < waiting.moment(Admitted)
