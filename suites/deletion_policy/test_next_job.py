"""What a deletion policy costs the next in the queue, on a node exactly as big as the quota."""

import pytest

from raykueue.run.states import Admitted, Pending, Running

# The node is a simulated one: a real one is as big as the machine, however small the quota.
pytestmark = [pytest.mark.queue("tight-node.yaml"), pytest.mark.tier("control-plane")]


def test_the_next_job_follows(leaving, queue, submit, expects, measure):
    """When a RayJob ends the next one gets its quota at once, and its node as soon as the last pod has gone."""
    for forced in leaving.expected.forces:
        expects(forced.rule, forced.cause, at_least_seconds=forced.seconds)
    first = submit(leaving.manifest()).until(Running)
    second = submit("rayjob-http.yaml").until(Pending)

    first.end(leaving.outcome)
    second.until(Running)
    measure("scheduled after admitted", second.placed() - second.moment(Admitted))


def test_the_next_job_finds_no_room(staying, queue, submit):
    """Where a RayJob's pods stay after its end, the next one is admitted, and never finds room."""
    first = submit(staying.manifest()).until(Running)
    second = submit("rayjob-http.yaml").until(Pending)

    first.end(staying.outcome)
    second.until(Admitted)
    assert not second.finds_room(within=staying.expected.watch)
