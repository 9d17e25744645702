"""What a RayJob's pods ask for, whoever adds it, is what its Workload is charged."""

import pytest

from raykueue.run.states import Complete, QuotaReserved, Running

# What pods ask for is in their objects: nothing has to run for it, and of these not all would on a real node.
pytestmark = pytest.mark.tier("control-plane")
SUBMITTER = pytest.param("rayjob.yaml", id="submitter")
SIDECAR = "rayjob-sidecar.yaml"
POD = "rayjob-pod-limits.yaml"


@pytest.mark.parametrize(
    "manifest",
    [
        SUBMITTER,
        pytest.param(SIDECAR, id="sidecar", marks=pytest.mark.needs("sidecar-mode")),
        pytest.param(POD, id="pod-limits"),
        pytest.param("rayjob-small-worker.yaml", id="init-container"),
    ],
)
def test_no_pod_asks_for_more_than_it_is_charged(queue, submit, manifest):
    """A pod of a RayJob never asks for more than it is charged, from the job's start to its end."""
    submit(manifest).until(Running).finish().until(Complete)


@pytest.mark.parametrize(
    "manifest",
    [
        SUBMITTER,
        pytest.param(SIDECAR, id="sidecar", marks=pytest.mark.needs("sidecar-mode", "sidecar-submitter-charged")),
        pytest.param(POD, id="pod-limits", marks=pytest.mark.needs("pod-level-resources-charged")),
    ],
)
def test_a_running_job_asks_for_all_that_it_is_charged(queue, submit, manifest):
    """A RayJob that runs asks for exactly what its PodSets are charged."""
    job = submit(manifest).until(Running)

    assert job.pods == job.pod_sets


@pytest.mark.queue("queue-with-check.yaml")
@pytest.mark.needs("redis-cleanup-charged")
def test_the_clean_up_of_redis_is_charged_with_the_head(queue, submit):
    """A head that asks for less than the pod that cleans Redis after the job is charged what that pod asks for."""
    job = submit("rayjob-redis.yaml").until(QuotaReserved)

    assert job.pod_sets["head"] == {"cpu": "200m", "memory": "256Mi"}
