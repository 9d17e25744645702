"""Rule `finished-stays-finished`: what is finished never runs, holds or books again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from raykueue.audit.books.changes import Change, HoldChange, ObjectChange
from raykueue.audit.books.entities import Hold, Job
from raykueue.audit.books.fold import Books
from raykueue.audit.rules.rule import Rule, finding_id, lasting
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.audit.windows import Window
from raykueue.model import rayjobs, views
from raykueue.model.events import Moment, Object
from raykueue.model.findings import Class, Finding, Ref
from raykueue.model.quantities import add, describe_all
from raykueue.model.workloads import FINISHED, QUOTA_RESERVED, Charge, job_uid

_UNFINISHED, _RESERVED, _RESTARTED, _HELD = "unfinished", "reserved-again", "job-restarted", "held-after-finish"
_OVERTAKEN = "admitted-after-deletion"
_OWNER_GONE = "OwnerNotFound"


@dataclass(slots=True, eq=False)
class _Return:
    """One time in which something finished came back."""

    what: str
    cause: str
    klass: Class
    ref: Ref
    job: Job | None
    window: Window
    tells: str
    hold: Hold | None = None
    part_of: str = ""


class FinishedStaysFinished(Rule):
    """Looks at transitions only: QuotaReserved stays True on every finished Workload, and that is fine.

    A finished Workload holds nothing; were it booked all the same, `books-match` would say so.
    """

    name: ClassVar[str] = "finished-stays-finished"
    sentence: ClassVar[str] = "a finished Workload or job never runs, holds or books quota again"
    klass: ClassVar[Class] = "contract"
    why: ClassVar[str] = "its quota was given to somebody else when it finished"
    source: ClassVar[str] = (
        "kueue apis/kueue/v1beta2/workload_types.go:988-990, pkg/workload/finish/finish.go, "
        "pkg/scheduler/scheduler.go:989-997@v0.19.2 (the admission's patch does not ask whether it is still unfinished)"
    )
    sees: ClassVar[frozenset[type | str] | None] = frozenset({HoldChange, "Workload", "RayJob"})

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._open: dict[tuple[str, str], _Return] = {}
        self._found: list[_Return] = []

    def see(self, change: Change) -> None:
        match change:
            case HoldChange():
                self._hold(change)
            case ObjectChange() if change.ref.kind == "Workload":
                self._workload(change)
            case ObjectChange() if change.ref.kind == "RayJob":
                self._job(change)

    def findings(self) -> Iterator[Finding]:
        for one in self._found:
            yield self._finding(one)

    def forget(self, scope: Scope) -> None:
        self._found = [one for one in self._found if not scope.owns(one.ref.namespace, "")]
        self._open = {key: one for key, one in self._open.items() if not scope.owns(one.ref.namespace, "")}

    def _workload(self, change: ObjectChange) -> None:
        ref, before, after, moment = change.ref, change.before, change.after, change.moment
        reserved = after is not None and views.is_true(after, QUOTA_RESERVED)
        if after is None or views.is_true(after, FINISHED):
            self._close(ref, _UNFINISHED, moment)
        if not reserved:
            self._close(ref, _RESERVED, moment)
        if before is None or after is None or not views.is_true(before, FINISHED):
            return
        gained = reserved and not views.is_true(before, QUOTA_RESERVED)
        reason = str((views.condition(before, FINISHED) or {}).get("reason", ""))
        if not views.is_true(after, FINISHED):
            overtaken = gained and reason == _OWNER_GONE
            told = "gained quota, and is unfinished again" if gained else "is unfinished again"
            one = self._begin(_UNFINISHED, "contract", ref, self._job_of(after), moment, f"{told} ({reason})")
            one.cause = _OVERTAKEN if overtaken else _UNFINISHED
            self._blame(ref, one, moment)
        elif gained:
            # Once its job is gone, Kueue's scheduler may still write what it had decided; it holds nothing then.
            klass: Class = "hazard" if reason == _OWNER_GONE else "contract"
            told = f"gained QuotaReserved after it was finished ({reason})"
            self._begin(_RESERVED, klass, ref, self._job_of(after), moment, told)

    def _job(self, change: ObjectChange) -> None:
        job = self.books.job(change.ref.uid)
        over = change.after is None or rayjobs.ended(change.after)
        if over:
            self._close(change.ref, _RESTARTED, change.moment)
        elif change.before is not None and rayjobs.ended(change.before) and job is not None and not job.skipped:
            was, now = rayjobs.deployment_status(change.before), _said(change.after)
            self._begin(_RESTARTED, "contract", change.ref, job, change.moment, f"went from {was} to {now}")

    def _hold(self, change: HoldChange) -> None:
        hold, after = change.hold, change.after
        undone = self._open.get((hold.ref.uid, _UNFINISHED))
        if undone is not None:
            undone.hold = hold
            undone.window.set(change.moment, _amounts(after))
        one = self._open.get((hold.ref.uid, _HELD))
        if one is not None and after is not None:
            one.window.set(change.moment, _amounts(after))
        elif one is not None:
            self._close(hold.ref, _HELD, change.moment)
        elif change.before is None and after is not None and not hold.before_journal:
            job = self.books.job(hold.job)
            if job is None or job.skipped or job.object is None or not rayjobs.ended(job.object):
                return
            told = f"gained quota after its job was {rayjobs.deployment_status(job.object)}"
            one = self._begin(_HELD, "contract", hold.ref, job, change.moment, told, hold)
            one.window.set(change.moment, _amounts(after))
            one.part_of = self._id(undone) if undone is not None else ""

    def _blame(self, ref: Ref, undone: _Return, moment: Moment) -> None:
        """What it holds again since that write is part of it, and no fault of its own."""
        for hold in undone.job.holds if undone.job is not None else ():
            if hold.ref.uid == ref.uid:
                undone.hold = hold
                undone.window.set(moment, _amounts(hold.charge))
        held = self._open.get((ref.uid, _HELD))
        if held is not None and held.window.begin == moment:
            held.part_of = self._id(undone)

    def _job_of(self, workload: Object) -> Job | None:
        return self.books.job(job_uid(workload))

    def _begin(
        self, what: str, klass: Class, ref: Ref, job: Job | None, moment: Moment, tells: str, hold: Hold | None = None
    ) -> _Return:
        one = _Return(what, what, klass, ref, job, Window(moment), tells, hold)
        self._open[ref.uid, what] = one
        self._found.append(one)
        return one

    def _close(self, ref: Ref, what: str, moment: Moment) -> None:
        one = self._open.pop((ref.uid, what), None)
        if one is not None:
            one.window.close(moment)

    def _id(self, one: _Return) -> str:
        return finding_id(self.name, f"{one.ref.uid} {one.what}", one.window.begin.rev)

    def _finding(self, one: _Return) -> Finding:
        window = one.window
        seconds = window.seconds(self.now)
        amount = f" ({describe_all(window.peak)})" if window.peak else ""
        about = f" of {one.job.ref}" if one.job is not None and one.job.ref != one.ref else ""
        refs = (one.ref,) if one.job is None or one.job.ref == one.ref else (one.job.ref, one.ref)
        return Finding(
            id=self._id(one),
            rule=self.name,
            klass=one.klass,
            cause=one.cause,
            text=f"{one.ref}{about} {one.tells}{amount}, {lasting(seconds, still=window.end is None)}",
            objects=refs,
            begin=window.begin,
            end=window.end,
            namespace=one.ref.namespace,
            cluster_queue=one.hold.charge.cluster_queue if one.hold is not None else "",
            payer=one.hold.payer if one.hold is not None else "",
            peak=window.peak,
            resource_seconds=window.resource_seconds(self.now),
            seconds=(seconds, seconds),
            part_of=one.part_of,
        )


def _amounts(charge: Charge | None) -> dict[str, int]:
    return add(*({resource: value} for (_, resource), value in charge.totals.items())) if charge is not None else {}


def _said(job: Object | None) -> str:
    return (rayjobs.deployment_status(job) if job is not None else "") or "New"
