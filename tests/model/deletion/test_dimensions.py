from __future__ import annotations

import pytest

from raykueue.model.deletion.dimensions import Mode, Outcome, Policy, Row, Shape


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (Row(Policy.DELETE_WORKERS, Shape.STRATEGY, Outcome.FAILED), "delete-workers-on-failure-queued-k8sjob"),
        (Row(Policy.NONE, Shape.SHUTDOWN, Outcome.STOPPED, ttl=3), "shutdown-on-stop-queued-k8sjob-ttl"),
        (Row(Policy.NONE, Shape.SHUTDOWN, queued=False, shutdown=False), "keep-on-success-unqueued-k8sjob"),
        (
            Row(Policy.DELETE_SELF, Shape.STAGES, mode=Mode.HTTP, queued=False, shutdown=False),
            "delete-self-in-stages-on-success-unqueued-http",
        ),
        (
            Row(Policy.DELETE_CLUSTER, Shape.RULES, mode=Mode.SIDECAR),
            "delete-cluster-by-rules-on-success-queued-sidecar-with-shutdown",
        ),
        (
            Row(Policy.DELETE_CLUSTER, Shape.STRATEGY, Outcome.FAILED, suspended=True, gate=False),
            "delete-cluster-on-failure-queued-k8sjob-resumed-gate-off",
        ),
        (Row(Policy.NONE, Shape.SHUTDOWN, mistake="no-rules"), "refused-no-rules"),
    ],
)
def test_a_rows_id_reads(row: Row, name: str) -> None:
    assert row.id == name


def test_keeping_everything_is_a_policy_of_its_own() -> None:
    shutdown, keep = Row(Policy.NONE, Shape.SHUTDOWN), Row(Policy.NONE, Shape.SHUTDOWN, shutdown=False)
    assert dict(shutdown.values())["policy"] != dict(keep.values())["policy"]
    assert dict(Row(Policy.DELETE_NONE, Shape.STRATEGY).values())["policy"] == Policy.DELETE_NONE
