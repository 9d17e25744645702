"""Deletion rules are for jobs outside Kueue, and what no rule names is deleted by nobody."""

import pytest

from raykueue.model.deletion.dimensions import Outcome
from raykueue.model.deletion.expected import Part
from raykueue.run.states import Running

pytestmark = pytest.mark.needs("deletion-strategy", "deletion-strategy-default")


@pytest.mark.parametrize("outcome", [Outcome.DEADLINE_RUNNING, Outcome.STOPPED])
def test_rules_for_success_and_failure_clean_up_whatever_the_end(queue, submit, outcome):
    """A RayJob with rules for success and for failure is cleaned up past its deadline, or when stopped, as well."""
    submit("rayjob-deletion-rules.yaml").until(Running).end(outcome).settle()


def test_a_rule_that_names_the_end_cleans_up(queue, submit):
    """The same RayJob is cleaned up when it fails."""
    job = submit("rayjob-deletion-rules.yaml").until(Running)
    assert job.end(Outcome.FAILED).settle() == {Part.RAYJOB}
