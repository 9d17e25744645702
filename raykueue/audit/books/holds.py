"""Which Workload holds quota, from when to when, and what it is charged."""

from __future__ import annotations

from collections import defaultdict

from raykueue.audit.books.changes import Change, HoldChange
from raykueue.audit.books.entities import Hold
from raykueue.audit.books.jobs import JobBook
from raykueue.model import views
from raykueue.model.events import Moment, Object
from raykueue.model.findings import Ref
from raykueue.model.quantities import add, largest
from raykueue.model.workloads import Charge, charge, holds, job_uid


class HoldBook:
    """Open holds by Workload UID. Keyed by UID: a Workload made again for the same job has the same name."""

    def __init__(self, jobs: JobBook) -> None:
        self._jobs = jobs
        self._open: dict[str, Hold] = {}
        self._all: dict[str, Hold] = {}
        self._count: dict[str, int] = defaultdict(int)
        self._by_namespace: dict[str, set[str]] = defaultdict(set)

    def open(self) -> list[Hold]:
        """Every open hold."""
        return list(self._open.values())

    def get(self, payer: str) -> Hold | None:
        """Any hold, ended ones too, until it is forgotten."""
        return self._all.get(payer)

    def apply(self, workload: Object, moment: Moment, *, gone: bool, listed: bool = False) -> list[Change]:
        """A Workload was written or removed; `listed`: it was there before the journal."""
        uid = views.uid(workload)
        changes: list[Change] = []
        hold = self._open.get(uid)
        owner = views.controller(workload)
        job = None
        if job_uid(workload):
            kind, name = (owner.kind, owner.name) if owner else ("", "")
            job = self._jobs.get(job_uid(workload)) or self._jobs.ensure(
                Ref(kind, views.namespace(workload), name, job_uid(workload))
            )
            changes += self._jobs.manage(job, moment)
        after = None if gone or not holds(workload) else charge(workload)
        if hold is not None:
            hold.workload = workload
            if after is None:
                del self._open[uid]
                hold.end, hold.gone = moment, gone
                if job is not None:
                    job.holds = [h for h in job.holds if h is not hold]
                changes.append(HoldChange(hold, hold.charge, None, moment))
            elif after != hold.charge:
                before, hold.charge = hold.charge, after
                hold.most = largest(hold.most, _by_resource(after))
                changes.append(HoldChange(hold, before, after, moment))
        elif after is not None:
            self._count[uid] += 1
            ref = views.ref("Workload", workload)
            self._by_namespace[ref.namespace].add(uid)
            hold = Hold(
                ref, self._count[uid], job.ref.uid if job else "", after, moment, workload, before_journal=listed
            )
            hold.most = _by_resource(after)
            self._open[uid] = self._all[hold.payer] = hold
            if job is not None:
                job.had_hold = True
                job.latest = hold
                job.holds.append(hold)
            changes.append(HoldChange(hold, None, after, moment))
        return changes

    def forget(self, namespace: str) -> None:
        for uid in self._by_namespace.pop(namespace, ()):
            self._open.pop(uid, None)
            for n in range(1, self._count.pop(uid, 0) + 1):
                self._all.pop(f"{uid}#{n}", None)


def _by_resource(charge: Charge) -> dict[str, int]:
    return add(*({resource: value} for (_, resource), value in charge.totals.items()))
