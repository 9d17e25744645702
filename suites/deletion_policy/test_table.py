"""The table of deletion policies: `raykueue/model/deletion/` says which rows there are and what each comes to."""

from raykueue.run.states import Running, Suspended


def test_policy(row, queue, submit, refusal, expects):
    """After a RayJob ends, exactly what its deletion policy keeps is left, in time, and nobody pays for it any more."""
    if row.expected.refusal:
        assert refusal(row.manifest()) == row.expected.refusal
        if row.expected.released:
            assert queue.until_set_aside().booked == {}
        else:
            queue.outlast_idle_quota()  # the ledger tells what is kept
        return
    for forced in row.expected.forces:
        expects(forced.rule, forced.cause, at_least_seconds=forced.seconds)

    job = submit(row.manifest()).until(row.start)
    if row.suspended:
        job.suspend().until(Suspended).resume().until(Running)
    assert queue.booked == job.charged

    after = job.end(row.outcome)
    assert after.status == row.expected.status
    assert after.left_behind(row.expected) == row.expected.kept
    assert row.expected.untimely(after.went) == []
    assert queue.until_set_aside().booked == {}
