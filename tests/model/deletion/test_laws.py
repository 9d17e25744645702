from __future__ import annotations

import pytest

from raykueue.model.deletion.candidates import candidates, mistaken
from raykueue.model.deletion.dimensions import Mode, Outcome, Policy, Row, Shape
from raykueue.model.deletion.expected import Due, Part
from raykueue.model.deletion.laws import expected, needs_gate_set
from raykueue.model.deletion.mistakes import MISTAKES
from raykueue.model.deletion.selection import full

PAIR = {"kueue": "0.19.2", "kuberay": "1.6.2"}
OLD = {"kueue": "0.10.1", "kuberay": "1.3.2"}
SILENT = (Outcome.STOPPED, Outcome.DEADLINE_INITIALIZING, Outcome.DEADLINE_RUNNING)


def strategy(policy: Policy, outcome: Outcome = Outcome.SUCCEEDED, ttl: int = 0) -> Row:
    return Row(policy, Shape.STRATEGY, outcome, ttl=ttl)


@pytest.mark.parametrize("shape", list(Shape))
def test_kueue_refuses_whatever_is_queued_without_shutdown(shape: Shape) -> None:
    policy = Policy.NONE if shape is Shape.SHUTDOWN else Policy.DELETE_CLUSTER
    refusal = expected(Row(policy, shape, shutdown=False), PAIR).refusal
    assert refusal is not None
    assert (refusal.by, refusal.field) == ("Kueue", "spec.shutdownAfterJobFinishes")


def test_no_rule_can_be_used_on_a_queued_job() -> None:
    rules = [row for row in candidates(PAIR).run if row.shape.by_rules]
    assert rules
    assert not any(row.queued for row in rules)


def test_who_admits_refuses_before_kuberay() -> None:
    row = Row(Policy.DELETE_NONE, Shape.STRATEGY, shutdown=False, gate=False)
    refusal = expected(row, PAIR).refusal
    assert refusal is not None
    assert refusal.by == "Kueue"


def test_what_a_mistake_needs_and_who_sees_it_is_its_own() -> None:
    for name, mistake in MISTAKES.items():
        about = expected(Row(Policy.NONE, Shape.SHUTDOWN, queued=False, mistake=name), PAIR)
        assert (about.refusal, about.source) == (mistake.refusal, mistake.source)
        assert "validation-failed" in about.needs or mistake.refusal.by != "KubeRay"


@pytest.mark.parametrize("outcome", SILENT)
def test_a_strategy_deletes_nothing_after_an_outcome_that_it_does_not_name(outcome: Outcome) -> None:
    for policy in (Policy.DELETE_CLUSTER, Policy.DELETE_WORKERS, Policy.DELETE_SELF):
        about = expected(strategy(policy, outcome), PAIR)
        assert about.kept == about.parts
        assert about.remark


@pytest.mark.parametrize("outcome", list(Outcome))
def test_shutdown_and_the_policy_of_old_versions_delete_after_every_outcome(outcome: Outcome) -> None:
    assert Part.HEAD not in expected(Row(Policy.NONE, Shape.SHUTDOWN, outcome), PAIR).kept
    assert Part.HEAD not in expected(Row(Policy.DELETE_CLUSTER, Shape.POLICY, outcome), OLD).kept


def test_a_rule_for_failed_deployments_acts_past_a_deadline_and_not_on_success() -> None:
    row = Row(Policy.DELETE_CLUSTER, Shape.FAILED_RULE, Outcome.DEADLINE_RUNNING, queued=False, shutdown=False)
    assert Part.CLUSTER not in expected(row, PAIR).kept
    done = Row(Policy.DELETE_CLUSTER, Shape.FAILED_RULE, queued=False, shutdown=False)
    assert Part.CLUSTER in expected(done, PAIR).kept


@pytest.mark.parametrize(
    ("kueue", "kept"),
    [("0.10.1", True), ("0.14.8", True), ("0.15.0", False), ("0.15.3", True), ("0.16.0", True), ("0.16.2", False)],
)
def test_the_head_that_delete_workers_keeps_goes_where_kueue_suspends_the_cluster(kueue: str, kept: bool) -> None:
    about = expected(strategy(Policy.DELETE_WORKERS), {"kueue": kueue, "kuberay": "1.5.1"})
    assert (Part.HEAD in about.kept) is kept
    assert kept or about.goes[Part.HEAD].by == "Kueue"
    unqueued = Row(Policy.DELETE_WORKERS, Shape.RULES, queued=False, shutdown=False)
    assert Part.HEAD in expected(unqueued, {"kueue": kueue, "kuberay": "1.5.1"}).kept


def test_stages_go_one_after_the_other() -> None:
    row = Row(Policy.DELETE_SELF, Shape.STAGES, queued=False, shutdown=False)
    goes = expected(row, PAIR).goes
    assert goes[Part.WORKERS] == Due(0)
    assert goes[Part.WORKERS].seconds < goes[Part.CLUSTER].seconds < goes[Part.RAYJOB].seconds


def test_a_ttl_under_kueue_forces_pods_that_nobody_pays_for() -> None:
    cluster, workers = (
        expected(strategy(policy, ttl=3), PAIR).forces for policy in (Policy.DELETE_CLUSTER, Policy.DELETE_WORKERS)
    )
    assert [(f.rule, f.cause, f.seconds) for f in cluster] == [("no-survivors", "finished/clean-up", 2.0)]
    assert [f.cause for f in workers] == ["finished/head-kept"]
    assert not expected(strategy(Policy.DELETE_CLUSTER), PAIR).forces
    assert not expected(Row(Policy.NONE, Shape.SHUTDOWN, queued=False, ttl=3), PAIR).forces


def test_there_is_a_submitter_in_k8s_job_mode_once_the_cluster_was_ready() -> None:
    def parts(mode: Mode, outcome: Outcome) -> frozenset[Part]:
        return expected(Row(Policy.NONE, Shape.SHUTDOWN, outcome, mode=mode), PAIR).parts

    assert Part.SUBMITTER in parts(Mode.K8S_JOB, Outcome.SUCCEEDED)
    assert Part.SUBMITTER not in parts(Mode.K8S_JOB, Outcome.DEADLINE_INITIALIZING)
    assert Part.SUBMITTER not in parts(Mode.HTTP, Outcome.SUCCEEDED) | parts(Mode.SIDECAR, Outcome.SUCCEEDED)


def test_the_gate_is_set_only_where_its_default_is_another() -> None:
    row = strategy(Policy.DELETE_CLUSTER)
    off = Row(Policy.DELETE_CLUSTER, Shape.STRATEGY, gate=False)
    assert (needs_gate_set(row, PAIR), needs_gate_set(off, PAIR)) == (None, False)
    older = {"kueue": "0.16.2", "kuberay": "1.5.1"}
    assert (needs_gate_set(row, older), needs_gate_set(off, older)) == (True, None)
    assert needs_gate_set(Row(Policy.NONE, Shape.SHUTDOWN), older) is None


def test_kuberay_looks_into_a_strategy_with_the_gate_on_only() -> None:
    older = {"kueue": "0.16.2", "kuberay": "1.5.1"}
    names = {name for name in MISTAKES if needs_gate_set(mistaken(name), older)}
    assert names == {
        "two-rules-alike",
        "workers-after-the-cluster",
        "workers-of-an-autoscaler",
        "rule-for-workers-of-an-autoscaler",
        "borrowed-cluster",
        "rule-for-a-borrowed-cluster",
    }
    assert [name for name in MISTAKES if needs_gate_set(mistaken(name), PAIR) is not None] == []


@pytest.mark.parametrize("pair", [PAIR, OLD])
def test_every_row_says_where_it_is_read(pair: dict[str, str]) -> None:
    for row in full(pair):
        assert "@v" in expected(row, pair).source, row.id


@pytest.mark.parametrize(
    ("kueue", "released"),
    [("0.10.1", True), ("0.14.0", False), ("0.17.1", False), ("0.18.3", False), ("0.18.5", True), ("0.19.2", True)],
)
def test_quota_of_a_job_found_invalid_comes_back_where_kueue_puts_it_on_hold_or_gives_it_none(
    kueue: str, released: bool
) -> None:
    about = expected(Row(Policy.DELETE_NONE, Shape.STRATEGY), {"kueue": kueue, "kuberay": "1.6.2"})
    assert about.refusal is not None
    assert about.released is released
    refused_at_once = expected(Row(Policy.NONE, Shape.SHUTDOWN, shutdown=False), {"kueue": kueue, "kuberay": "1.6.2"})
    assert refused_at_once.released
