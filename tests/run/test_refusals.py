from __future__ import annotations

from typing import Any

import pytest

from raykueue.errors import ProductDefect, WaitFailed
from raykueue.kube.client import ApiError
from raykueue.kube.refusals import refused
from raykueue.model.deletion.expected import Refusal
from raykueue.run.job import Job
from raykueue.run.refusals import Refused, of_answer, refusal
from raykueue.run.timeouts import Timeouts
from tests.run.feeds import FakeFeed
from tests.run.test_job import job_in

SHUTDOWN = (
    'admission webhook "vrayjob.kb.io" denied the request: spec.shutdownAfterJobFinishes: Invalid value: false: '
    "a kueue managed job should delete the cluster after finishing"
)
SOON = Timeouts(state=0.05)


def answer(message: str, code: int = 403, **body: Any) -> ApiError:
    return ApiError("POST", "/path", code, {"message": message, **body})


def invalid(message: str, field: str, reason: str = "FieldValueInvalid") -> ApiError:
    causes = [{"reason": reason, "message": message, "field": field}]
    return answer(f'RayJob.ray.io "job" is invalid: {field}: {message}', 422, details={"causes": causes})


def refused_with(error: ApiError) -> Refusal:
    def submit(_: object) -> Job:
        raise Refused(error)

    return refusal(submit, {})


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (answer(SHUTDOWN), True),
        (answer("words", 422), True),
        (answer("no object", 400), True),
        (answer('rayjobs.ray.io is forbidden: User "nobody" cannot create resource'), False),
        (answer('Internal error occurred: failed calling webhook "vrayjob.kb.io": no endpoints', 500), False),
        (answer("exists already", 409), False),
    ],
)
def test_only_what_is_about_the_rayjob_itself_is_a_refusal(error: ApiError, is_one: bool) -> None:
    assert refused(error) is is_one


def test_a_refusal_that_nobody_expects_is_the_products_failure() -> None:
    assert isinstance(Refused(answer(SHUTDOWN)), ProductDefect)


def test_kueues_webhook_names_itself_the_field_and_its_words() -> None:
    assert refused_with(answer(SHUTDOWN)) == Refusal(
        "Kueue", "spec.shutdownAfterJobFinishes", "a kueue managed job should delete the cluster after finishing"
    )


@pytest.mark.parametrize(
    ("error", "field", "message"),
    [
        (
            invalid('Invalid value: "object": needs both', "spec.deletionStrategy"),
            "spec.deletionStrategy",
            "needs both",
        ),
        (
            invalid(
                'Unsupported value: "DeleteHead": supported values: "DeleteCluster", "DeleteSelf"',
                "spec.deletionStrategy.onFailure.policy",
                "FieldValueNotSupported",
            ),
            "spec.deletionStrategy.onFailure.policy",
            'supported values: "DeleteCluster", "DeleteSelf"',
        ),
        (
            invalid("Invalid value: 0: spec.rules in body should have at least 1 items", "spec.rules"),
            "spec.rules",
            "spec.rules in body should have at least 1 items",
        ),
        (invalid("words that have no value: at all", "spec.x"), "spec.x", "words that have no value: at all"),
        (answer("the body is no object", 400), "", "the body is no object"),
    ],
)
def test_the_api_servers_own_validation_says_field_and_words(error: ApiError, field: str, message: str) -> None:
    assert refused_with(error) == Refusal("API server", field, message)


def test_a_webhook_that_nobody_expected_is_no_refusal_by_kueue() -> None:
    text = 'admission webhook "policy.example.com" denied the request: no RayJobs on Mondays'
    with pytest.raises(WaitFailed, match=r"webhook policy\.example\.com, which nobody expected.*Mondays"):
        of_answer(text, {})


def test_an_answer_that_is_no_refusal_is_raised() -> None:
    def submit(_: object) -> Job:
        raise answer("try again later", 503)

    with pytest.raises(ApiError):
        refusal(submit, {})


def test_kuberay_refuses_in_its_status() -> None:
    feed = FakeFeed()
    job = job_in(feed)
    feed.write(
        "RayJob", "job", status={"jobDeploymentStatus": "ValidationFailed", "message": "The RayJob spec is invalid: no"}
    )
    assert refusal(lambda _: job, {}, SOON) == Refusal("KubeRay", "", "The RayJob spec is invalid: no")


def test_a_job_that_runs_is_not_refused() -> None:
    feed = FakeFeed()
    feed.job("Running", "RUNNING")
    with pytest.raises(WaitFailed, match="expected to be refused, but it runs"):
        refusal(lambda _: job_in(feed), {}, SOON)


def test_nobody_refusing_in_time_is_told_with_what_the_job_is() -> None:
    feed = FakeFeed()
    feed.job("Initializing")
    with pytest.raises(WaitFailed, match=r'within 0\.05 s, but nobody did; it is jobDeploymentStatus "Initializing"'):
        refusal(lambda _: job_in(feed), {}, SOON)
