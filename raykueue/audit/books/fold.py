"""Folds one event after the other into the books, and says what changed. Events must come in order of revision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from raykueue.audit.answers import Problem
from raykueue.audit.books.changes import Change, CohortChange, ObjectChange, QueueChange
from raykueue.audit.books.entities import Hold, Job, Pod, Queue
from raykueue.audit.books.holds import HoldBook
from raykueue.audit.books.identities import Identities
from raykueue.audit.books.jobs import JobBook
from raykueue.audit.books.pods import PodBook
from raykueue.audit.books.usage import UsageBook
from raykueue.audit.books.workloads import WorkloadBook
from raykueue.model import views
from raykueue.model.events import Event, Moment, Object
from raykueue.model.findings import Ref
from raykueue.model.queues import QuotaSpec, booked, quota_spec


@dataclass(slots=True)
class Known:
    """An object that exists, as last seen."""

    ref: Ref
    rev: int
    object: Object


class Books:
    """Everything known at one revision. Rules read it, only `apply` writes it."""

    def __init__(self) -> None:
        self.identities = Identities()
        self.queues: dict[str, Queue] = {}
        """By name of the ClusterQueue."""
        self.cohorts: dict[str, QuotaSpec] = {}
        self.objects: dict[str, Known] = {}
        """By UID, everything that exists."""
        self.problems: list[Problem] = []
        self._jobs = JobBook()
        self._holds = HoldBook(self._jobs)
        self._pods = PodBook(self._jobs, self._holds, self.identities, self.problems)
        self._workloads = WorkloadBook()
        self.usage = UsageBook(self.queues, self._jobs, self._pods)
        self._living: dict[str, set[str]] = defaultdict(set)
        self._closed: set[str] = set()

    def job(self, uid: str) -> Job | None:
        return self._jobs.get(uid)

    def jobs(self) -> Iterator[Job]:
        """Every job ever seen and not forgotten."""
        return self._jobs.all()

    def pod(self, uid: str) -> Pod | None:
        """A pod of a Ray job that exists."""
        return self._pods.get(uid)

    def hold(self, payer: str) -> Hold | None:
        """A hold by `<Workload UID>#<n>`, ended ones too."""
        return self._holds.get(payer)

    def workloads(self, owner: str) -> list[Object]:
        """The existing Workloads whose controller has that UID, oldest first, finished and deleting ones included."""
        return self._workloads.of(owner)

    def payees(self, hold: Hold) -> list[Pod]:
        """The existing pods that a hold pays for, or paid for until it ended."""
        return self._pods.of(hold)

    def apply(self, event: Event, moment: Moment) -> list[Change]:
        """Takes one event in; returns what it changed. A repeated or older state of an object changes nothing."""
        obj = event.object
        uid = views.uid(obj)
        known = self.objects.get(uid)
        if known is not None and event.rev <= known.rev:
            return []
        gone = event.type == "DELETED"
        ref = known.ref if known is not None else views.ref(event.kind, obj)
        before, after = (known.object if known is not None else None), (None if gone else obj)
        changes: list[Change] = []
        if event.kind == "Workload":
            self._workloads.apply(obj, gone=gone)
            changes += self._holds.apply(obj, moment, gone=gone, listed=event.listed)
            changes = [*self._pods.pass_on(changes), *changes]
        elif event.kind == "Pod":
            changes += self._pods.apply(event, moment)
        elif event.kind == "ClusterQueue":
            changes += self._queue(obj, moment, gone=gone)
        elif event.kind == "Cohort":
            changes += self._cohort(obj, moment, gone=gone)
        elif event.kind in ("RayJob", "RayCluster", "RayService"):
            changes += self._jobs.apply(ref, obj, moment, self.identities, gone=gone)
        self.usage.apply(changes)
        changes.append(ObjectChange(ref, before, after, moment))
        self._remember(ref, event.rev, after, known)
        return changes

    def forget(self, namespaces: frozenset[str]) -> None:
        """Drops what is gone in these namespaces, now and, for what still lives there, as soon as it is gone."""
        self._closed |= namespaces
        for namespace in namespaces:
            self._drop_if_empty(namespace)

    def _remember(self, ref: Ref, rev: int, after: Object | None, known: Known | None) -> None:
        if after is None:
            self.objects.pop(ref.uid, None)
            self._living[ref.namespace].discard(ref.uid)
            if ref.namespace in self._closed:
                self._drop_if_empty(ref.namespace)
        elif known is not None:
            known.rev, known.object = rev, after
        else:
            self.objects[ref.uid] = Known(ref, rev, after)
            self._living[ref.namespace].add(ref.uid)

    def _drop_if_empty(self, namespace: str) -> None:
        if self._living.get(namespace):
            return
        self._living.pop(namespace, None)
        self.identities.forget(namespace)
        self._holds.forget(namespace)
        self._jobs.forget(namespace)

    def _queue(self, obj: Object, moment: Moment, *, gone: bool) -> list[Change]:
        name = views.name(obj)
        before = self.queues.get(name)
        after: Queue | None = None
        if gone:
            self.queues.pop(name, None)
        else:
            silent = views.deleting(obj) or not views.status(obj)
            after = Queue(views.ref("ClusterQueue", obj), quota_spec(obj), None if silent else booked(obj))
            self.queues[name] = after
        return [] if before == after else [QueueChange(name, before, after, moment)]

    def _cohort(self, obj: Object, moment: Moment, *, gone: bool) -> list[Change]:
        name = views.name(obj)
        before = self.cohorts.pop(name, None)
        after = None if gone else quota_spec(obj)
        if after is not None:
            self.cohorts[name] = after
        return [] if before == after else [CohortChange(name, before, after, moment)]
