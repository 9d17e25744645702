import pytest

from raykueue.run.states import Admitted, CheckPending, QuotaReserved, Running


@pytest.mark.queue("queue-with-check.yaml")
@pytest.mark.exclusive(faults=True)
def test_a_hold_outlives_a_restart_of_kueue(queue, submit, sabotage, let_through):
    """A Workload whose check is pending keeps its quota over a restart of Kueue, and the books are right after it."""
    job = submit("rayjob.yaml").until(CheckPending)
    sabotage.kill("kueue")
    sabotage.revive("kueue")

    assert queue.reserved == job.charged
    assert queue.booked == {}
    assert len(job.moments(QuotaReserved)) == 1
    assert not job.was(Admitted)
    let_through(job)
    job.until(Running)
