"""Who held quota and who waited for it, at every revision of a journal: what a scheduler could have known."""

from __future__ import annotations

import datetime
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from raykueue.audit.books.changes import Change, CohortChange, HoldChange, ObjectChange
from raykueue.audit.replay import steps
from raykueue.audit.thresholds import Thresholds, ns
from raykueue.audit.uptime import Uptime
from raykueue.audit.victims import Contender, Policy, Request, Room
from raykueue.model import requests, views
from raykueue.model.events import Marker, Moment, Object, Record
from raykueue.model.findings import Ref
from raykueue.model.queues import QuotaSpec, quota_spec
from raykueue.model.workloads import EVICTED, FINISHED, QUOTA_RESERVED, active, holds, replaces

V = TypeVar("V")

_PREEMPTOR = re.compile(r"\(UID: ([^,)]+)")
_QUEUED_AGAIN = frozenset({"AdmissionCheck", "PodsReadyTimeout"})
_BOOST = "kueue.x-k8s.io/priority-boost"


class Timeline(Generic[V]):
    """A step function of revisions."""

    def __init__(self) -> None:
        self._revs: list[int] = []
        self._values: list[V] = []

    def put(self, rev: int, value: V) -> bool:
        """From that revision on it is this; whether that is something new."""
        if self._values and self._values[-1] == value:
            return False
        self._revs.append(rev)
        self._values.append(value)
        return True

    def at(self, rev: int) -> V | None:
        """The value that was written at that revision or before; None: there was none yet."""
        place = bisect_right(self._revs, rev)
        return self._values[place - 1] if place else None

    def after(self, rev: int) -> Iterator[tuple[int, V]]:
        """What was written later."""
        place = bisect_right(self._revs, rev)
        yield from zip(self._revs[place:], self._values[place:], strict=True)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a Workload says at one revision, as far as it matters who comes first."""

    priority: int
    queued: float
    reserved: float
    evicted: bool
    waits: bool
    """It asks for quota and may be given it."""
    queue: str
    """Its LocalQueue."""
    boosted: bool


@dataclass(slots=True, eq=False)
class Life:
    """One Workload."""

    ref: Ref
    facts: Timeline[Facts | None] = field(default_factory=Timeline)
    """None: it is gone."""
    held: Timeline[tuple[str, Request] | None] = field(default_factory=Timeline)
    """(ClusterQueue, what it is charged) while it holds quota."""
    object: Object | None = None


@dataclass(frozen=True, slots=True)
class Eviction:
    """One Workload that was preempted."""

    moment: Moment
    victim: str
    preemptor: str
    """UID; empty if the message names none."""
    reason: str


class History:
    """All of a journal, by revision."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.lives: dict[str, Life] = {}
        self.evictions: list[Eviction] = []
        self.turns: list[tuple[Moment, str]] = []
        """When something changed that a scheduler decides by, and of which Workload; empty: of all."""
        self.last = Moment(0, 0)
        self._queues: dict[str, Timeline[tuple[QuotaSpec, Policy] | None]] = {}
        self._cohorts: dict[str, Timeline[QuotaSpec | None]] = {}
        self._local: dict[tuple[str, str], Timeline[str]] = {}
        self._topologies: set[str] = set()
        self._tainted: set[str] = set()
        self._open: dict[str, set[str]] = {}
        clock = Uptime(ns(Thresholds().restart), ("kueue",))
        self._clock: list[tuple[int, int]] = []
        for step in steps(records):
            self.last = step.moment
            if isinstance(step.item, Marker):
                clock.mark(step.item, step.moment.t)
            self._clock.append((step.moment.t, clock.at(step.moment.t)))
            for change in step.changes:
                self._see(change)

    def room(self, cluster_queue: str, rev: int, *, until: int | None = None) -> Room:
        """Quota and holders of a ClusterQueue and of all in its cohort, as they were at a revision.

        until: counts also those that began to hold up to that later revision: a scheduler leads its own writes.
        """
        beside = self.beside(cluster_queue, rev)
        queues = {name: now for name in beside if (now := self._queues[name].at(rev)) is not None}
        cohorts = {name: spec for name, line in self._cohorts.items() if (spec := line.at(rev)) is not None}
        found: list[Contender] = []
        for name in queues:
            for uid in self._open.get(name, ()):
                one = self.holder(uid, rev) or (self.holder(uid, until) if until is not None else None)
                if one is not None and one.cluster_queue == name:
                    found.append(one)
        return Room(queues, cohorts, found)

    def uptime(self, t: int) -> int:
        """Wall time (ns) of a step, by a clock that stands still while Kueue is known dead."""
        return self._clock[bisect_right(self._clock, (t, t)) - 1][1]

    def beside(self, cluster_queue: str, rev: int) -> set[str]:
        """The ClusterQueue, and all that share its cohort."""
        line = self._queues.get(cluster_queue)
        own = line.at(rev) if line else None
        if own is None or not own[0].parent:
            return {cluster_queue}
        others = ((name, other.at(rev)) for name, other in self._queues.items())
        return {name for name, other in others if other is not None and other[0].parent == own[0].parent}

    def knows(self, cluster_queue: str, rev: int) -> bool:
        """There was such a ClusterQueue."""
        line = self._queues.get(cluster_queue)
        return line is not None and line.at(rev) is not None

    def holder(self, uid: str, rev: int) -> Contender | None:
        """The Workload as one that holds quota."""
        life = self.lives[uid]
        held, facts = life.held.at(rev), life.facts.at(rev)
        if held is None or facts is None:
            return None
        return Contender(life.ref, held[0], facts.priority, facts.queued, held[1], facts.reserved, facts.evicted)

    def waiting(self, uid: str, rev: int) -> Contender | None:
        """The Workload as one that waits for quota; None if it doesn't, or what it asks is not known."""
        life = self.lives[uid]
        facts = life.facts.at(rev)
        if facts is None or not facts.waits or life.held.at(rev) is not None:
            return None
        return self._asking(life, facts, rev)

    def preemptor(self, uid: str, rev: int) -> Contender | None:
        """The Workload that others made room for; None if it was not seen, or what it asked is not known."""
        life = self.lives.get(uid)
        facts = life.facts.at(rev) if life else None
        return self._asking(life, facts, rev) if life is not None and facts is not None else None

    def unmodelled(self, one: Contender, rev: int) -> str:
        """What about a Workload the model of victims knows nothing of; empty if nothing."""
        facts = self.lives[one.ref.uid].facts.at(rev)
        if facts is not None and facts.boosted:
            return f"{one.ref} has a priority boost"
        if any(flavor in self._topologies for flavor, _ in one.asks):
            return "its flavor has a topology"
        return ""

    def picky(self, one: Contender) -> bool:
        """Its pods may not go to every node of the flavors, so it may be kept out for another reason than quota."""
        if any(flavor in self._tainted for flavor, _ in one.asks):
            return True
        templates = [
            (pod_set.get("template") or {}).get("spec") or {}
            for pod_set in views.spec(self.lives[one.ref.uid].object or {}).get("podSets") or ()
        ]
        return any(template.get("nodeSelector") or template.get("affinity") for template in templates)

    # -- reading

    def _see(self, change: Change) -> None:
        match change:
            case HoldChange():
                life = self._life(change.hold.ref)
                charge = change.after
                held = None if charge is None else (charge.cluster_queue, dict(charge.totals))
                life.held.put(change.moment.rev, held)
                if held is not None:
                    self._open.setdefault(held[0], set()).add(life.ref.uid)
                self.turns.append((change.moment, life.ref.uid))
            case CohortChange():
                self._cohorts.setdefault(change.name, Timeline()).put(change.moment.rev, change.after)
                self.turns.append((change.moment, ""))
            case ObjectChange():
                self._object(change)

    def _object(self, change: ObjectChange) -> None:
        ref, obj, rev = change.ref, change.after, change.moment.rev
        if ref.kind == "Workload":
            life = self._life(ref)
            life.object = obj or life.object
            if life.facts.put(rev, _facts(obj) if obj is not None else None):
                self.turns.append((change.moment, ref.uid))
            self._evicted(change)
        elif ref.kind == "ClusterQueue":
            line = self._queues.setdefault(ref.name, Timeline())
            if line.put(rev, (quota_spec(obj), _policy(obj)) if obj is not None else None):
                self.turns.append((change.moment, ""))
        elif ref.kind == "LocalQueue" and obj is not None:
            held = views.spec(obj).get("stopPolicy", "None") != "None"
            target = "" if held else str(views.spec(obj).get("clusterQueue", ""))
            self._local.setdefault((ref.namespace, ref.name), Timeline()).put(rev, target)
        elif ref.kind == "ResourceFlavor" and obj is not None:
            if views.spec(obj).get("topologyName"):
                self._topologies.add(ref.name)
            if views.spec(obj).get("nodeTaints"):
                self._tainted.add(ref.name)

    def _evicted(self, change: ObjectChange) -> None:
        now, before = _preempted(change.after), _preempted(change.before)
        if now is not None and now != before:
            found = _PREEMPTOR.search(now[1])
            uid = found.group(1) if found else ""
            reason = str((views.condition(change.after or {}, "Preempted") or {}).get("reason", ""))
            self.evictions.append(Eviction(change.moment, change.ref.uid, uid, reason))

    def _life(self, ref: Ref) -> Life:
        return self.lives.setdefault(ref.uid, Life(ref))

    def _asking(self, life: Life, facts: Facts, rev: int) -> Contender | None:
        """By what it was given later; else by its template, if each resource has one flavor only."""
        later = next((held for _, held in life.held.after(rev) if held is not None), None)
        line = self._local.get((life.ref.namespace, facts.queue))
        name = later[0] if later else (line.at(rev) or "" if line else "")
        if not self.knows(name, rev):
            return None
        asks = later[1] if later else self._template(life.object, name, rev)
        return None if asks is None else Contender(life.ref, name, facts.priority, facts.queued, asks)

    def _template(self, workload: Object | None, name: str, rev: int) -> Request | None:
        queue = self._queues[name].at(rev)
        if workload is None or queue is None:
            return None
        flavors: dict[str, str] = {}
        for resources, names in queue[0].groups:
            if len(names) != 1:
                return None
            flavors.update(dict.fromkeys(resources, names[0]))
        total: dict[tuple[str, str], int] = {}
        for pod_set in views.spec(workload).get("podSets") or ():
            asked = {**requests.effective(pod_set.get("template") or {}), "pods": 1}
            for resource, value in asked.items():
                if resource in flavors:
                    key = (flavors[resource], resource)
                    total[key] = total.get(key, 0) + value * int(pod_set.get("count", 1))
        return total


def _facts(workload: Object) -> Facts:
    evicted = views.condition(workload, EVICTED) or {}
    again = evicted.get("status") == "True" and evicted.get("reason") in _QUEUED_AGAIN
    reserved = views.condition(workload, QUOTA_RESERVED) or {}
    requeued = views.condition(workload, "Requeued") or {}
    return Facts(
        priority=int(views.spec(workload).get("priority") or 0),
        queued=_seconds(evicted.get("lastTransitionTime") if again else workload["metadata"].get("creationTimestamp")),
        reserved=_seconds(reserved.get("lastTransitionTime") if reserved.get("status") == "True" else None),
        evicted=views.is_true(workload, EVICTED) and holds(workload),
        waits=not (
            views.is_true(workload, FINISHED)
            or not active(workload)
            or views.deleting(workload)
            or requeued.get("status") == "False"
            or bool((views.status(workload).get("requeueState") or {}).get("requeueAt"))
            or bool(replaces(workload))
        ),
        queue=str(views.spec(workload).get("queueName", "")),
        boosted=bool(views.annotation(workload, _BOOST)),
    )


def _policy(queue: Object) -> Policy:
    body = views.spec(queue)
    rules: Mapping[str, Any] = body.get("preemption") or {}
    unmodelled = ""
    if (rules.get("borrowWithinCohort") or {}).get("policy", "Never") != "Never":
        unmodelled = "borrowWithinCohort is set"
    elif body.get("admissionScope"):
        unmodelled = "admission is by fair sharing"
    inactive = (views.condition(queue, "Active") or {}).get("status") == "False"
    stopped = inactive or body.get("stopPolicy", "None") != "None" or bool(body.get("namespaceSelector"))
    return Policy(
        str(rules.get("withinClusterQueue", "Never")),
        str(rules.get("reclaimWithinCohort", "Never")),
        unmodelled,
        stopped,
    )


def _preempted(workload: Object | None) -> tuple[str, str] | None:
    """(when, message) of an eviction by preemption."""
    found = views.condition(workload, EVICTED) if workload is not None else None
    if found is None or found.get("status") != "True" or found.get("reason") != "Preempted":
        return None
    return str(found.get("lastTransitionTime", "")), str(found.get("message", ""))


def _seconds(timestamp: str | None) -> float:
    return datetime.datetime.fromisoformat(timestamp).timestamp() if timestamp else 0.0
