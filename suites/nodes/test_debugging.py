"""DeleteWorkers: the head stays, so that somebody can look into it."""

import pytest

from raykueue.model.deletion.dimensions import Outcome
from raykueue.model.deletion.expected import Part
from raykueue.run.states import Running

pytestmark = [pytest.mark.tier("node"), pytest.mark.needs("deletion-strategy", "deletion-strategy-default")]


def test_a_kept_head_can_be_looked_into(queue, submit):
    """After a RayJob with DeleteWorkers has failed, its workers go, and its head still runs Ray and commands."""
    job = submit("rayjob-delete-workers.yaml").until(Running)

    assert job.end(Outcome.FAILED).settle(of={Part.WORKERS}) == set(Part) - {Part.WORKERS}
    assert job.run_in_head("ray", "job", "list").exit_code == 0
