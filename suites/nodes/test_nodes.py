"""Nodes that are lost or restarted under a RayJob."""

import pytest

from raykueue.run.states import Complete, Running

pytestmark = [pytest.mark.tier("node"), pytest.mark.exclusive(faults="nodes")]


def test_a_job_goes_on_while_its_kubelet_restarts(queue, submit, sabotage):
    """A RayJob whose node's kubelet restarts keeps running on the quota that it has, and succeeds."""
    job = submit("rayjob.yaml").until(Running)
    sabotage.restart_kubelet(job)

    assert job.finish().until(Complete).job_status == "SUCCEEDED"
    assert len(job.moments(Running)) == 1
