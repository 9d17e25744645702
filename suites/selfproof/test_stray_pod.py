import pytest

from raykueue.run.states import Complete, Running


@pytest.mark.smoke
def test_a_pod_that_nobody_pays_for_is_found(queue, submit, sabotage, expects):
    """A pod added under a running RayJob's cluster is reported, with its amount."""
    job = submit("rayjob.yaml").until(Running)
    stray = sabotage.pod_beside(job, cpu="1")
    expects("pods-covered", "extra-pods", at_least={"cpu": "1"}, at_most={"cpu": "1"})

    sabotage.remove(job, stray)
    job.finish().until(Complete)
