"""Jobs that are suspended, or should be, for the tests of `suspended-means-empty`."""

from __future__ import annotations

from typing import Any

from raykueue.audit.scope import Scope
from raykueue.model.findings import Finding
from tests.audit.journals import EPOCH, NAMESPACE, Job, Journal, Pod

RULE = "suspended-means-empty"
SCOPE = Scope(frozenset({NAMESPACE}), frozenset({"cq"}))


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [f.text for f in findings]
    return findings[0]


def causes(findings: list[Finding]) -> list[str]:
    return [f.cause for f in findings]


def owed(j: Journal, until: float) -> list[tuple[str, float | None]]:
    found = [o for o in j.ledger(until).obligations(SCOPE) if o.rule == RULE]
    return [(o.text, (o.until - EPOCH) / 1e9 if o.until is not None else None) for o in found]


def queued(j: Journal, **settings: Any) -> Job:
    a = j.at(-100).job("a", j.queue(), **settings)
    a.workload.write()
    a.state("Suspended")
    return a


def running(j: Journal, status: str = "Running", **settings: Any) -> Job:
    a = queued(j, **settings)
    a.workload.admit()
    a.suspend(False)
    a.state(status, "RUNNING")
    return a


def unqueued(j: Journal, grace: int = 5, **settings: Any) -> tuple[Job, Pod]:
    """A job that Kueue has nothing to do with, running."""
    a = j.at(-100).job("a", j.queue(), labelled=False, **settings)
    a.suspend(False)
    a.state("Running", "RUNNING")
    return a, a.pod("head", grace=grace, labels={"ray.io/node-type": "head"})


def held_while_suspended(j: Journal) -> tuple[Job, Pod]:
    """W+a, P+h, Wev, J.s=T, J:Suspended@0, and the hold stays open."""
    a = running(j)
    head = a.pod("head")
    j.at(-1)
    a.workload.evict()
    a.suspend(True)
    j.at(0)
    a.state("Suspended")
    return a, head
