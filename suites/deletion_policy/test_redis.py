"""GCS fault tolerance: KubeRay keeps the RayCluster of a finished RayJob until a Job has cleaned Redis."""

import pytest

from raykueue.model.deletion.dimensions import Outcome
from raykueue.run.states import Running

# There is no Redis on real nodes; on simulated ones its clean-up succeeds after a second.
pytestmark = pytest.mark.tier("control-plane")


def test_redis_is_cleaned_up_after_the_job(queue, submit):
    """The Job that cleans Redis after a RayJob is let run to its end, and then the RayCluster goes."""
    job = submit("rayjob-redis.yaml").until(Running)

    job.end(Outcome.SUCCEEDED).settle()
    job.give_up_clean_up()
