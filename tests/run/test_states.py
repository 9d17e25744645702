from __future__ import annotations

from typing import Any

import pytest

from raykueue.run import states
from raykueue.run.states import ALL, CheckPending, Evicted, Failed, Finished, Pending, Running, State
from tests.run.feeds import conditions


def job(deployment: str = "", status: str = "") -> dict[str, Any]:
    return {"metadata": {}, "status": {"jobDeploymentStatus": deployment, "jobStatus": status}}


def workload(**about: str) -> dict[str, Any]:
    return {"metadata": {}, "status": {"conditions": conditions(**about)}}


@pytest.mark.parametrize("name", ["Suspended", "Complete", "Failed", "ValidationFailed"])
def test_a_state_of_kuberay_is_its_own_word(name: str) -> None:
    state: State = getattr(states, name)
    assert state.holds(job(name))
    assert not state.holds(job("Initializing"))
    assert not state.holds({"metadata": {}})


def test_a_job_runs_once_both_kuberay_and_ray_say_so() -> None:
    assert Running.holds(job("Running", "RUNNING"))
    assert not Running.holds(job("Running", "PENDING"))
    assert not Running.holds(job("Complete", "RUNNING"))


@pytest.mark.parametrize(
    ("reserved", "checks", "waits"),
    [
        ("True", ["Pending"], True),
        ("True", ["Ready", "Pending"], True),
        ("True", ["Ready"], False),
        ("True", [], False),
        ("False", ["Pending"], False),
    ],
)
def test_a_workload_waits_for_a_check_that_kueue_has_asked_for(reserved: str, checks: list[str], waits: bool) -> None:
    asked = workload(QuotaReserved=reserved)
    asked["status"]["admissionChecks"] = [{"name": "held", "state": state} for state in checks]
    assert CheckPending.holds(asked) is waits


@pytest.mark.parametrize("name", ["QuotaReserved", "Admitted", "Evicted", "Requeued", "Finished"])
def test_a_state_of_kueue_is_a_true_condition(name: str) -> None:
    state: State = getattr(states, name)
    assert state.holds(workload(**{name: "True"}))
    assert not state.holds(workload(**{name: "False"}))
    assert not state.holds({"metadata": {}})


def test_a_workload_is_pending_once_kueue_has_said_why_and_until_it_is_finished() -> None:
    assert Pending.holds(workload(QuotaReserved="False"))
    assert not Pending.holds(workload())
    assert not Pending.holds(workload(QuotaReserved="True"))
    assert not Pending.holds(workload(QuotaReserved="False", Finished="True"))


def test_an_eviction_tells_its_reason() -> None:
    assert Evicted.explain(workload(Evicted="True Preempted")) == "Preempted"
    assert Evicted.explain(workload()) == ""


def test_a_detail_matters_only_where_one_is_wanted() -> None:
    seen = Evicted("Preempted")
    assert Evicted.matches(seen)
    assert Evicted("Preempted").matches(seen)
    assert not Evicted("Deactivated").matches(seen)
    assert not Finished.matches(seen)
    assert seen != Evicted
    assert seen == Evicted("Preempted")
    assert str(seen) == "Evicted('Preempted')"


def test_every_state_names_only_states_as_the_end_of_it() -> None:
    names = {state.name for state in ALL}
    assert len(names) == len(ALL)
    assert all(set(state.after) <= names - {state.name} for state in ALL)
    assert "Complete" in Failed.after
