"""When a scope is judged: as soon as nothing can fire any more, and not a barrier later."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from raykueue.audit.answers import Circumstances
from raykueue.audit.handovers import HandOver
from raykueue.model.events import Barrier
from raykueue.model.findings import Finding
from raykueue.run.recorder.auditor import Guarded, Obligation
from raykueue.run.recorder.scopes import ScopeNames

JUDGE_S = 30.0
"""Deadline of a judgement, unless the request names one."""
SLACK_S = 0.02
"""Waited beyond an obligation's end, so that the barrier that follows lies behind it."""


@dataclass(slots=True)
class Arrivals:
    """What arrived for a scope: the highest revision, and an event set at each arrival."""

    rev: int = 0
    happened: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, rev: int) -> None:
        """One more event."""
        self.rev = max(self.rev, rev)
        self.happened.set()


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome for one scope. With `problems`, or with obligations that are left, the findings are not final."""

    findings: Sequence[Finding]
    handovers: Sequence[HandOver]
    circumstances: Mapping[str, Circumstances]
    obligations: Sequence[Obligation]
    problems: Sequence[str]
    rev: int
    arrived: int
    """Both of the barrier at which it was judged."""
    judged_ms: float


async def judge(
    scope: ScopeNames,
    auditor: Guarded,
    barrier: Callable[[], Awaitable[Barrier]],
    run_problems: Sequence[str],
    arrivals: Arrivals,
    deadline_s: float,
) -> Judged:
    """Barrier, fold, and again at each event of the scope, until no obligation is left or all have run out.

    Args:
        scope: whose findings.
        auditor: the ledger; `barrier` folds it.
        barrier: raises RecorderError.
        run_problems: those of the whole run, as they are at each look.
        arrivals: of this scope.
        deadline_s: after which the obligations that are left are returned.
    """
    began = time.monotonic()
    ledger = auditor.ledger
    while True:
        passed = await barrier()
        arrivals.happened.clear()
        problems = [*run_problems, *([auditor.broken] if auditor.broken else ledger.problems(scope))]
        obligations = (
            []
            if problems
            else [one for one in ledger.obligations(scope) if one.until is None or one.until >= passed.arrived]
        )
        left_s = began + deadline_s - time.monotonic()
        if not obligations or left_s <= 0:
            findings = () if auditor.broken else ledger.findings(scope)
            return Judged(
                findings=findings,
                handovers=() if auditor.broken else ledger.handovers(scope),
                circumstances={} if auditor.broken else ledger.circumstances(findings),
                obligations=obligations,
                problems=problems,
                rev=passed.rev,
                arrived=passed.arrived,
                judged_ms=(time.monotonic() - began) * 1e3,
            )
        if arrivals.rev > passed.rev:
            continue
        ends = [one.until for one in obligations if one.until is not None]
        due_s = (min(ends) - time.time_ns()) / 1e9 + SLACK_S if ends else left_s
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(arrivals.happened.wait(), max(0.0, min(due_s, left_s)))
