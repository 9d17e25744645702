"""Whatever submits the Ray job, the RayJob ends as the Ray job does."""

import pytest

from raykueue.run.states import Complete, Failed, Running

MODES = [
    pytest.param("rayjob.yaml", id="k8sjob"),
    pytest.param("rayjob-http.yaml", id="http"),
    pytest.param("rayjob-sidecar.yaml", id="sidecar", marks=pytest.mark.needs("sidecar-mode")),
]


@pytest.mark.parametrize("manifest", MODES)
def test_a_job_that_succeeds_is_complete(queue, submit, manifest):
    """A RayJob whose Ray job succeeds is SUCCEEDED and Complete."""
    assert submit(manifest).until(Running).finish().until(Complete).job_status == "SUCCEEDED"


@pytest.mark.parametrize("manifest", MODES)
def test_a_job_that_fails_is_failed(queue, submit, manifest):
    """A RayJob whose Ray job fails is Failed."""
    submit(manifest).until(Running).finish(exit_code=1).until(Failed)


@pytest.mark.parametrize("manifest", MODES)
def test_a_job_that_is_stopped_is_complete(queue, submit, manifest):
    """A RayJob whose Ray job is stopped by a user is STOPPED and Complete."""
    assert submit(manifest).until(Running).stop().until(Complete).job_status == "STOPPED"
