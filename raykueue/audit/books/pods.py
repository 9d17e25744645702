"""Which pods exist, whose they are, and who pays for them: fixed at birth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from raykueue.audit.answers import Problem
from raykueue.audit.books.changes import Change, HoldChange, PodChange
from raykueue.audit.books.entities import RAY_KINDS, Hold, Pod, PodState
from raykueue.audit.books.holds import HoldBook
from raykueue.audit.books.identities import Identities, looks_like_ray, pod_set_of
from raykueue.audit.books.jobs import JobBook
from raykueue.model import requests, views
from raykueue.model.events import Event, Moment, Object
from raykueue.model.workloads import FINISHED, replaces

_SLICED = "WorkloadSliceReplaced"


class PodBook:
    """Pods of Ray jobs by UID, and by payer. Other pods are nobody's business here."""

    def __init__(self, jobs: JobBook, holds: HoldBook, identities: Identities, problems: list[Problem]) -> None:
        self._jobs = jobs
        self._holds = holds
        self._identities = identities
        self._problems = problems
        self._pods: dict[str, Pod] = {}
        self._payees: dict[str, set[str]] = defaultdict(set)

    def get(self, uid: str) -> Pod | None:
        return self._pods.get(uid)

    def of(self, hold: Hold) -> list[Pod]:
        return [self._pods[uid] for uid in sorted(self._payees.get(hold.payer, ()))]

    def apply(self, event: Event, moment: Moment) -> list[Change]:
        """A pod was written or removed."""
        uid = views.uid(event.object)
        known = self._pods.get(uid)
        if event.type == "DELETED":
            return self._end(known, event.object, moment) if known is not None else []
        if known is None:
            return self._birth(event, moment)
        before = known.state
        known.state = _state(event.object, before.payer)
        known.object = event.object
        known.job.grace = max(known.job.grace, known.state.grace)
        return [PodChange(known, before, known.state, moment)] if known.state != before else []

    def pass_on(self, changes: Iterable[Change]) -> list[Change]:
        """When an elastic slice was replaced, its pods pass to the hold of the slice that replaces it.

        Source: kueue pkg/workloadslicing/workloadslicing.go:81@v0.19.2. The new one holds already.
        """
        passed: list[Change] = []
        for change in changes:
            if not (isinstance(change, HoldChange) and change.after is None):
                continue
            heir = self._successor(change.hold)
            if heir is None:
                continue
            for pod in self.of(change.hold):
                before = pod.state
                pod.state = before._replace(payer=heir)
                self._payees[change.hold.payer].discard(pod.ref.uid)
                self._payees[heir.payer].add(pod.ref.uid)
                passed.append(PodChange(pod, before, pod.state, change.moment))
        return passed

    def _successor(self, hold: Hold) -> Hold | None:
        finished = views.condition(hold.workload, FINISHED)
        if finished is None or finished.get("reason") != _SLICED:
            return None
        job = self._jobs.get(hold.job)
        heirs = [h for h in job.holds if replaces(h.workload) == hold.ref.name] if job else []
        return heirs[-1] if heirs else None

    def _birth(self, event: Event, moment: Moment) -> list[Change]:
        obj = event.object
        found = self._identities.attribute(obj)
        if found is None:
            if looks_like_ray(obj):
                self._problems.append(_unattributed(obj, event.rev))
            return []
        if found.job.kind not in RAY_KINDS:
            return []
        self._check_order(event)
        job = self._jobs.ensure(found.job)
        changes: list[Change] = []
        if views.labels(obj).get(views.POD_SET) or views.annotation(obj, views.WORKLOAD):
            changes += self._jobs.manage(job, moment)
        owner = views.controller(obj)
        pod_set, cleanup = pod_set_of(obj, submitter=owner is not None and owner.kind == "Job")
        payer = job.holds[-1] if job.holds else None
        pod = Pod(
            views.ref("Pod", obj),
            job,
            pod_set,
            cleanup,
            moment,
            _containers(obj),
            _state(obj, payer),
            obj,
            found.by_label,
            event.listed,
            payer is None and not job.had_hold,
            owner is not None and self._identities.deleted_before(owner.uid, event.rev),
        )
        self._pods[pod.ref.uid] = pod
        job.grace = max(job.grace, pod.state.grace)
        job.pods.add(pod.ref.uid)
        if payer is not None:
            self._payees[payer.payer].add(pod.ref.uid)
        changes.append(PodChange(pod, None, pod.state, moment))
        return changes

    def _end(self, pod: Pod, obj: Object, moment: Moment) -> list[Change]:
        del self._pods[pod.ref.uid]
        pod.object = obj
        pod.job.pods.discard(pod.ref.uid)
        payer = pod.state.payer
        if payer is not None:
            payees = self._payees[payer.payer]
            payees.discard(pod.ref.uid)
            if not payees:
                del self._payees[payer.payer]
        return [PodChange(pod, pod.state, None, moment)]

    def _check_order(self, event: Event) -> None:
        """One counter orders all kinds: a pod's creation comes after that of its RayCluster."""
        owner = views.controller(event.object)
        known = self._identities.get(owner.uid) if owner else None
        if known is not None and event.type == "ADDED" and not event.listed and event.rev < known.first_rev:
            text = (
                f"pod {views.namespace(event.object)}/{views.name(event.object)} has revision {event.rev}, its owner "
                f"{known.ref} {known.first_rev}: revisions of different kinds are not in one order here, so nothing "
                "can be judged; use an API server with one etcd"
            )
            self._problems.append(Problem("unordered", text, until=known.first_rev))


def _state(obj: Object, payer: Hold | None) -> PodState:
    return PodState(
        payer,
        requests.demand(obj),
        requests.live(obj),
        requests.gated(obj),
        requests.bound(obj),
        requests.terminating(obj),
        views.status(obj).get("phase") == "Running",
        requests.grace_seconds(obj),
    )


def _containers(obj: Object) -> frozenset[str]:
    spec = views.spec(obj)
    return frozenset(str(c["name"]) for c in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())])


def _unattributed(obj: Object, rev: int) -> Problem:
    text = (
        f"pod {views.namespace(obj)}/{views.name(obj)} looks like one of a Ray job, but no owner of it was seen: it is "
        "charged to nobody; start recording before the job is made"
    )
    return Problem("unattributed", text, views.namespace(obj), rev)
