"""What most journals about a hand-over do, and what a ledger makes of it."""

from __future__ import annotations

from typing import Any

from raykueue.audit.handovers import HandOver
from raykueue.audit.scope import Scope
from tests.audit.journals import NAMESPACE, Job, Journal, Pod, Queue

SCOPE = Scope(frozenset({NAMESPACE}), frozenset({"cq", "a", "b"}))


def running(j: Journal, name: str, queue: Queue, **settings: Any) -> tuple[Job, list[Pod]]:
    a = j.at(-20).job(name, queue, **settings)
    a.workload.admit()
    pods = a.start()
    a.state("Running", "RUNNING")
    return a, pods


def preempt(a: Job) -> None:
    """Wev, J.s=T, C-, J:Suspended, W-."""
    a.workload.evict()
    a.suspend(True)
    a.stop_cluster()
    a.state("Suspended")
    a.workload.release()


def gone(pods: list[Pod]) -> None:
    for pod in pods:
        pod.gone()


def handed_over(j: Journal, until: float) -> HandOver:
    (one,) = j.ledger(until).handovers(SCOPE)
    assert j.ledger(until, stepwise=True).handovers(SCOPE) == [one]
    return one
