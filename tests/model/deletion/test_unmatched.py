from __future__ import annotations

from typing import Any

import pytest

from raykueue.model.deletion.unmatched import unmatched
from tests.model.deletion.test_observed import Story

RULES = [
    {"policy": "DeleteCluster", "condition": {"jobStatus": "SUCCEEDED"}},
    {"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED"}},
]
POD = {"containers": [{"name": "ray", "resources": {"requests": {"cpu": "1"}}}]}


def story(
    rules: list[dict[str, Any]] | None = None, deployment: str = "Failed", job: str = "RUNNING", until: float = 6.0
) -> Story:
    spec = {"deletionStrategy": {"deletionRules": RULES if rules is None else rules}}
    told = Story()
    told.see("RayJob", "job", spec=spec, status={"jobDeploymentStatus": "Running"})
    told.see("RayCluster", "cluster", "job")
    told.see("Pod", "head", "cluster", metadata={"labels": {"ray.io/node-type": "head"}}, spec=POD)
    status = {"jobDeploymentStatus": deployment, "jobStatus": job, "endTime": "1970-01-01T00:16:40Z"}
    told.see("RayJob", "job", at=0.5, spec=spec, status=status)
    going = {"deletionTimestamp": "1970-01-01T00:16:46Z"}
    told.see("RayJob", "job", at=until, metadata=going, spec=spec, status=status)
    told.see("RayCluster", "cluster", "job", until + 0.1, "DELETED")
    told.see("RayJob", "job", at=until + 0.2, what="DELETED", spec=spec, status=status)
    return told


@pytest.mark.parametrize(("deployment", "job"), [("Failed", "RUNNING"), ("Failed", ""), ("Complete", "STOPPED")])
def test_an_end_that_no_rule_names_is_found_with_what_it_uses(deployment: str, job: str) -> None:
    finding = unmatched(story(deployment=deployment, job=job).events, "job")
    assert finding is not None
    assert (finding.rule, finding.cause) == ("cleaned-up", "no-rule-matches")
    assert finding.seconds == (5.5, 5.5)
    assert finding.resource_seconds["cpu"] == 5500
    assert job or "jobStatus empty" in finding.text


def test_the_finding_is_the_same_whenever_it_is_looked_for() -> None:
    first, second = (unmatched(story().events, "job") for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.id == second.id


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(story(job="FAILED"), id="a rule names its end"),
        pytest.param(story(until=2.0), id="it was deleted before kuberay had its time"),
        pytest.param(story(rules=[]), id="it has no rules"),
        pytest.param(story(rules=RULES[:1]), id="its rules are not for every end"),
        pytest.param(story(rules=[{**rule, "policy": "DeleteNone"} for rule in RULES]), id="its rules delete nothing"),
        pytest.param(
            story(rules=[*RULES, {"policy": "DeleteSelf", "condition": {"jobDeploymentStatus": "Failed"}}]),
            id="a rule names its deployment status",
        ),
    ],
)
def test_nothing_is_found_where(told: Story) -> None:
    assert unmatched(told.events, "job") is None


def test_a_job_that_left_nothing_is_not_found() -> None:
    told = story()
    cut = [event for event in told.events if event.object["metadata"]["uid"] in ("job",)]
    assert unmatched(cut, "job") is None


def test_a_job_that_has_not_ended_is_not_found() -> None:
    assert unmatched(story().events[:3], "job") is None
