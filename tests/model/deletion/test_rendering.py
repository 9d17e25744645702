from __future__ import annotations

import copy
from typing import Any

import pytest

from raykueue.model.deletion.dimensions import Mode, Outcome, Policy, Row, Shape
from raykueue.model.deletion.mistakes import MISTAKES
from raykueue.model.deletion.rendering import FILES, rendered
from raykueue.model.views import QUEUE_NAME
from raykueue.run.manifests import load_one


def spec(row: Row) -> dict[str, Any]:
    body = rendered(row, load_one(FILES[row.mode], "RayJob"))["spec"]
    assert isinstance(body, dict)
    return body


def test_a_row_is_the_file_of_its_mode_with_its_few_fields() -> None:
    for mode, file in FILES.items():
        written = load_one(file, "RayJob")
        before = copy.deepcopy(written)
        row = Row(Policy.DELETE_CLUSTER, Shape.STRATEGY, mode=mode, ttl=3)
        made = rendered(row, written)
        assert written == before
        changed = {key for key in made["spec"] if made["spec"][key] != written["spec"].get(key)}
        assert changed == {"deletionStrategy", "ttlSecondsAfterFinished"}
        assert {**made, "spec": 0} == {**written, "spec": 0}


def test_each_modes_file_is_of_that_mode() -> None:
    for mode, file in FILES.items():
        assert load_one(file, "RayJob")["spec"].get("submissionMode", Mode.K8S_JOB) == mode


def test_an_unqueued_row_has_no_queue() -> None:
    row = Row(Policy.NONE, Shape.SHUTDOWN, queued=False)
    written = load_one(FILES[row.mode], "RayJob")
    assert QUEUE_NAME in written["metadata"]["labels"]
    assert QUEUE_NAME not in rendered(row, written)["metadata"]["labels"]


@pytest.mark.parametrize("shape", [Shape.STRATEGY, Shape.RULES])
@pytest.mark.parametrize("policy", [policy for policy in Policy if policy is not Policy.NONE])
def test_the_other_outcome_has_another_policy_so_that_none_is_taken_for_the_other(shape: Shape, policy: Policy) -> None:
    def policies(outcome: Outcome) -> list[str]:
        made = spec(Row(policy, shape, outcome, queued=False, shutdown=False))["deletionStrategy"]
        if shape is Shape.RULES:
            assert [rule["condition"]["jobStatus"] for rule in made["deletionRules"]] == ["SUCCEEDED", "FAILED"]
            return [rule["policy"] for rule in made["deletionRules"]]
        return [made["onSuccess"]["policy"], made["onFailure"]["policy"]]

    succeeded, failed = policies(Outcome.SUCCEEDED), policies(Outcome.FAILED)
    assert succeeded[0] == failed[1] == policy
    assert succeeded[1] != policy
    assert failed[0] != policy
    assert policies(Outcome.STOPPED) == [policy, policy]


def test_a_ttl_is_in_the_field_of_its_shape() -> None:
    strategy = spec(Row(Policy.DELETE_SELF, Shape.STRATEGY, ttl=3))
    assert strategy["ttlSecondsAfterFinished"] == 3
    rules = spec(Row(Policy.DELETE_SELF, Shape.RULES, queued=False, shutdown=False, ttl=3))
    assert "ttlSecondsAfterFinished" not in rules
    assert {rule["condition"]["ttlSeconds"] for rule in rules["deletionStrategy"]["deletionRules"]} == {3}


def test_old_versions_take_one_policy() -> None:
    made = spec(Row(Policy.DELETE_WORKERS, Shape.POLICY))
    assert made["deletionPolicy"] == "DeleteWorkers"
    assert "deletionStrategy" not in made


def test_stages_come_for_success_and_for_failure() -> None:
    rules = spec(Row(Policy.DELETE_SELF, Shape.STAGES, shutdown=False))["deletionStrategy"]["deletionRules"]
    for status in ("SUCCEEDED", "FAILED"):
        mine = [rule for rule in rules if rule["condition"]["jobStatus"] == status]
        assert [rule["policy"] for rule in mine] == ["DeleteWorkers", "DeleteCluster", "DeleteSelf"]
        assert sorted(rule["condition"]["ttlSeconds"] for rule in mine) == [
            rule["condition"]["ttlSeconds"] for rule in mine
        ]


def test_what_an_outcome_needs_is_in_the_manifest() -> None:
    assert spec(Row(Policy.NONE, Shape.SHUTDOWN, Outcome.RETRIES_USED_UP))["backoffLimit"] == 1
    late = spec(Row(Policy.NONE, Shape.SHUTDOWN, Outcome.DEADLINE_INITIALIZING))
    cluster = late["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        assert group["template"]["spec"]["nodeSelector"]


@pytest.mark.parametrize("outcome", [Outcome.DEADLINE_INITIALIZING, Outcome.DEADLINE_RUNNING])
def test_no_manifest_has_a_deadline_that_a_slow_machine_could_meet_too_early(outcome: Outcome) -> None:
    assert "activeDeadlineSeconds" not in spec(Row(Policy.NONE, Shape.SHUTDOWN, outcome))


@pytest.mark.parametrize("name", list(MISTAKES))
def test_a_mistake_is_the_only_difference_of_its_row(name: str) -> None:
    row = Row(Policy.NONE, Shape.SHUTDOWN, queued=False, mistake=name)
    made, written = spec(row), load_one(FILES[row.mode], "RayJob")["spec"]
    changed = {key for key in {*made, *written} if made.get(key) != written.get(key)}
    assert changed == {key for key, value in MISTAKES[name].spec.items() if value != written.get(key)}
    if "rayClusterSpec" in made:
        assert made["rayClusterSpec"]["headGroupSpec"] == written["rayClusterSpec"]["headGroupSpec"]
