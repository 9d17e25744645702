import pytest

from raykueue.run.states import Complete, Running


@pytest.mark.full
@pytest.mark.exclusive(faults=True)
def test_pods_that_stay_while_kuberay_is_down_are_found(queue, submit, sabotage, expects):
    """Pods of a finished job that nobody cleans up, since KubeRay is down for 40 s, are reported beyond its TTL."""
    job = submit("rayjob-ttl.yaml").until(Running)
    expects("no-survivors", "finished/clean-up", at_least_seconds=38, at_most_seconds=60)

    job.finish().until(Complete)
    sabotage.outage("kuberay", seconds=40, told=False)
