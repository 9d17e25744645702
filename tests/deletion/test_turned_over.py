"""Each kind of expectation of the table decides: turned over, it makes the row red, on what was recorded of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from raykueue.errors import FindingError
from raykueue.model.deletion.expected import Due, Expected, Forced, Part, Refusal, Status
from tests.deletion.replayed import JOURNALS, Replayed

SUCCEEDED = "shutdown-on-success-queued-k8sjob"
WORKERS = "delete-workers-on-success-queued-k8sjob"
STAGES = "delete-self-in-stages-on-success-unqueued-http"
TTL = "delete-workers-on-failure-queued-k8sjob-ttl"
REFUSED = "delete-none-on-success-queued-k8sjob"


def with_refusal(**other: Any) -> Callable[[Expected], Expected]:
    def turned(about: Expected) -> Expected:
        assert about.refusal is not None
        return replace(about, refusal=replace(about.refusal, **other))

    return turned


def goes(about: Expected, **other: Due) -> Expected:
    return replace(about, goes={**about.goes, **{Part[part.upper()]: due for part, due in other.items()}})


@pytest.mark.parametrize("row", sorted(path.name.removesuffix(".jsonl.gz") for path in JOURNALS.iterdir()))
def test_a_recorded_row_is_green_as_the_table_has_it(row: str) -> None:
    recorded = Replayed.of(row)
    recorded.run(recorded.case)


@pytest.mark.parametrize(
    ("row", "turned"),
    [
        pytest.param(REFUSED, with_refusal(by="Kueue"), id="who refuses"),
        pytest.param(REFUSED, with_refusal(field="spec.deletionStrategy"), id="which field is refused"),
        pytest.param(REFUSED, with_refusal(message="no"), id="in which words it is refused"),
        pytest.param(SUCCEEDED, lambda a: replace(a, refusal=Refusal("KubeRay", "", "no")), id="that it is refused"),
        pytest.param(SUCCEEDED, lambda a: replace(a, status=Status("Failed", "SUCCEEDED")), id="the deployment status"),
        pytest.param(SUCCEEDED, lambda a: replace(a, status=Status("Complete", "STOPPED")), id="the job status"),
        pytest.param(TTL, lambda a: replace(a, status=Status("Failed", "FAILED", "SubmissionFailed")), id="the reason"),
        pytest.param(SUCCEEDED, lambda a: replace(a, parts=a.parts - {Part.SUBMITTER}), id="that a part is kept"),
        pytest.param(SUCCEEDED, lambda a: goes(a, submitter=Due(0)), id="that a part goes"),
        pytest.param(
            WORKERS,
            lambda a: replace(a, goes={Part.WORKERS: a.goes[Part.WORKERS]}),
            id="that kueue takes the head that delete-workers keeps",
        ),
        pytest.param(SUCCEEDED, lambda a: goes(a, cluster=Due(9)), id="that nothing goes too early"),
        pytest.param(TTL, lambda a: goes(a, workers=Due(-20)), id="that nothing goes too late"),
        pytest.param(STAGES, lambda a: goes(a, workers=Due(3), cluster=Due(0)), id="the order of stages"),
    ],
)
def test_an_expectation_that_is_turned_over_makes_its_row_red(row: str, turned: Callable[[Expected], Expected]) -> None:
    recorded = Replayed.of(row)
    with pytest.raises(AssertionError):
        recorded.run(replace(recorded.case, expected=turned(recorded.case.expected)))


def test_a_finding_that_a_row_forces_must_appear() -> None:
    recorded = Replayed.of(TTL)
    longer = replace(recorded.case.expected, forces=(Forced("no-survivors", "finished/head-kept", seconds=60.0),))
    with pytest.raises(FindingError, match=r"no-survivors / finished/head-kept; .*at least 60 s"):
        recorded.run(replace(recorded.case, expected=longer))


def test_a_finding_that_a_row_does_not_force_must_be_explained() -> None:
    recorded = Replayed.of(TTL)
    other = replace(recorded.case.expected, forces=(Forced("no-survivors", "finished/clean-up", seconds=1.0),))
    with pytest.raises(FindingError, match="expected, but did not appear: no-survivors / finished/clean-up"):
        recorded.run(replace(recorded.case, expected=other))
