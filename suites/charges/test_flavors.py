"""Pods run where their flavors say."""

import pytest

from raykueue.run.states import Complete, Running

pytestmark = pytest.mark.queue("queue-on-linux.yaml")


def test_every_pod_carries_the_labels_of_its_flavor(queue, submit):
    """Head, workers and submitter of a RayJob may run only on nodes of the flavors that they are charged to."""
    submit("rayjob.yaml").until(Running).finish().until(Complete)
