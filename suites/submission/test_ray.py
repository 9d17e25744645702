"""The contract of whatever Ray there is, real or simulated: a test says when a Ray job ends, and only once."""

import pytest

from raykueue.errors import UsageError
from raykueue.run.states import Complete, Running

MODES = [
    pytest.param("rayjob.yaml", id="k8sjob"),
    pytest.param("rayjob-http.yaml", id="http"),
    pytest.param("rayjob-sidecar.yaml", id="sidecar", marks=pytest.mark.needs("sidecar-mode")),
]


@pytest.mark.parametrize("manifest", MODES)
def test_a_ray_job_runs_until_it_is_told_to_end(queue, submit, manifest):
    """A Ray job can't be ended before it runs, runs until it is told its end, and can't be told twice."""
    job = submit(manifest)
    with pytest.raises(UsageError, match="RayJob"):
        job.finish()

    job.until(Running)
    assert job.ray_state == "RUNNING"
    job.finish().until(Complete)
    with pytest.raises(UsageError, match="RayJob"):
        job.finish()
