"""Steps 3 to 5 of the guide as published: its queue is too small for its own job."""

import pytest

from raykueue.run.states import Admitted, Pending

PUBLISHED = pytest.mark.queue("guide/kueue-resources.yaml")
PRINTED_USAGE = {"cpu": 8, "memory": "19531250Ki", "nvidia.com/gpu": 2}


@PUBLISHED
@pytest.mark.needs("submitter-pod-set")
def test_the_published_job_does_not_fit_into_the_published_queue(queue, submit, note):
    """The guide's RayJob waits for ever in the guide's queue, since its submitter pod is charged as well."""
    job = submit("guide/rayjob.yaml").until(Pending)

    why = job.waits_because()
    assert "submitter" in why
    assert "maximum capacity" in why
    assert queue.booked == {}
    assert not job.was(Admitted)
    note(f"The guide's queue (step 3) never admits the guide's job (step 4). Kueue says: {why}")


@PUBLISHED
def test_the_printed_usage_is_more_than_the_queue_has(queue, submit, note):
    """The usage that step 5 prints cannot occur: it is a multiple of the quota that step 3 grants."""
    for _ in range(3):
        submit("guide/rayjob.yaml").until(Pending)

    assert queue.quota == {"cpu": 2, "memory": "8G", "nvidia.com/gpu": 1}
    assert not queue.quota.covers(PRINTED_USAGE)
    assert queue.peak_booked <= queue.quota
    note("The usage printed in step 5 of the guide (8 CPU, 19531250Ki, 2 GPUs) exceeds its own quota (2, 8G, 1).")
