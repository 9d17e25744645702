"""Nodes that are lost or restarted under a RayJob."""

import pytest

from raykueue.run.states import Admitted, Complete, Running

pytestmark = [pytest.mark.tier("node"), pytest.mark.exclusive(faults="nodes")]


def test_a_job_goes_on_while_its_kubelet_restarts(queue, submit, sabotage):
    """A RayJob whose node's kubelet restarts keeps running on the quota that it has, and succeeds."""
    job = submit("rayjob.yaml").until(Running)
    sabotage.restart_kubelet(job)

    assert job.finish().until(Complete).job_status == "SUCCEEDED"
    assert len(job.moments(Running)) == 1


@pytest.mark.lacks("head-not-replaced")
def test_a_job_whose_node_is_lost_keeps_its_quota(queue, submit, sabotage):
    """A RayJob whose head's node is lost holds its quota, once, until it runs again on a head that is made anew."""
    job = submit("rayjob-lost-node.yaml").until(Running)
    head, charged = job.head, job.charged
    node = sabotage.lose_node(job)
    job.until_head_is_told_to_go()
    assert queue.booked == charged

    sabotage.find_node(node)
    job.until_head_is_replaced(head)
    assert queue.booked == charged
    assert len(job.moments(Admitted)) == 1
