"""Whose pod is it? By owner UIDs, kept also for what is gone; by labels only if an owner was never seen.

Never by name prefix: a RayCluster deleted from outside comes back under the same name with another UID, and a retry
makes a second RayCluster of the same job. Sources: kuberay ray-operator/controllers/ray/rayjob_controller.go:969,
common/pod.go:776-800@v1.6.2; kueue apis/kueue/v1beta2/workload_types.go:285@v0.19.2.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from raykueue.model import views
from raykueue.model.events import Event, Object
from raykueue.model.findings import Ref
from raykueue.model.views import Owner
from raykueue.model.workloads import job_uid

_OWNERS = frozenset({"RayJob", "RayCluster", "Job", "Workload"})


@dataclass(frozen=True, slots=True)
class Identity:
    """What never changes about an object."""

    ref: Ref
    owner: Owner | None
    first_rev: int
    """Revision of its creation; 0 if it was there before the journal."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The job of a pod."""

    job: Ref
    by_label: bool = False


class Identities:
    """UID to identity, for every owner ever seen."""

    def __init__(self) -> None:
        self._known: dict[str, Identity] = {}
        self._named: dict[tuple[str, str, str], str] = {}
        self._cluster_of: dict[tuple[str, str], str] = {}
        self._job_of_workload: dict[tuple[str, str], str] = {}
        self._queued: set[str] = set()
        self._deleted: dict[str, int] = {}
        """UID → the revision from which on it was gone or going."""
        self._by_namespace: dict[str, set[str]] = defaultdict(set)

    def learn(self, event: Event) -> None:
        """Takes note of an object that may own others. In any order: the same is kept in the end."""
        if event.kind not in _OWNERS:
            return
        obj = event.object
        ref = views.ref(event.kind, obj)
        if ref.uid not in self._known:
            first = event.rev if event.type == "ADDED" and not event.listed else 0
            self._known[ref.uid] = Identity(ref, views.controller(obj), first)
            self._by_namespace[ref.namespace].add(ref.uid)
            self._named[ref.kind, ref.namespace, ref.name] = ref.uid
        if event.type == "DELETED" or views.deleting(obj):
            self._deleted[ref.uid] = min(event.rev, self._deleted.get(ref.uid, event.rev))
        if event.kind == "RayJob":
            cluster = views.status(obj).get("rayClusterName")
            if cluster:
                self._cluster_of[ref.namespace, str(cluster)] = ref.uid
        elif event.kind == "Workload":
            self._job_of_workload[ref.namespace, ref.name] = job_uid(obj)
            self._queued.add(job_uid(obj))

    def get(self, uid: str) -> Identity | None:
        return self._known.get(uid)

    def deleted_before(self, uid: str, rev: int) -> bool:
        """It was gone or going when that revision came. Events are learned ahead of it, so when counts, not whether."""
        return uid in self._deleted and self._deleted[uid] < rev

    def is_child(self, uid: str) -> bool:
        """Its controller is a RayJob, or a RayService that Kueue queues: it is no job of its own."""
        known = self._known.get(uid)
        owner = known.owner if known else None
        return owner is not None and (
            owner.kind == "RayJob" or (owner.kind == "RayService" and owner.uid in self._queued)
        )

    def attribute(self, pod: Object) -> Attribution | None:
        """The job at the top of the pod's chain of controllers: a RayJob if there is one. None: not known.

        A RayCluster of a RayService that Kueue does not queue is a job of its own.
        """
        chain, complete = self._chain(pod)
        tops = [o for o in chain if o.kind == "RayJob"]
        tops += [o for o in chain if o.kind == "RayService" and o.uid in self._queued]
        tops += [o for o in reversed(chain) if o.kind in ("RayCluster", "Job")] if complete else []
        if not tops:
            return self._by_label(pod)
        return Attribution(Ref(tops[0].kind, views.namespace(pod), tops[0].name, tops[0].uid))

    def _chain(self, pod: Object) -> tuple[list[Owner], bool]:
        """The pod's controllers from below, and whether every RayCluster and Job among them was seen."""
        chain: list[Owner] = []
        owner = views.controller(pod)
        while owner is not None:
            chain.append(owner)
            seen = self._known.get(owner.uid)
            if seen is None:
                return chain, owner.kind not in ("RayCluster", "Job")
            owner = seen.owner
        return chain, True

    def forget(self, namespace: str) -> None:
        """Drops everything of a namespace."""
        for uid in self._by_namespace.pop(namespace, ()):
            ref = self._known.pop(uid).ref
            self._named.pop((ref.kind, ref.namespace, ref.name), None)
            self._deleted.pop(uid, None)
        for index in (self._cluster_of, self._job_of_workload):
            for key in [key for key in index if key[0] == namespace]:
                del index[key]

    def _by_label(self, pod: Object) -> Attribution | None:
        namespace = views.namespace(pod)
        uid = self._cluster_of.get((namespace, views.labels(pod).get(views.RAY_CLUSTER, "")), "")
        uid = uid or self._job_of_workload.get((namespace, views.annotation(pod, views.WORKLOAD)), "")
        uid = uid or self._named.get(("RayJob", namespace, views.labels(pod).get("job-name", "")), "")
        known = self._known.get(uid)
        return Attribution(known.ref, by_label=True) if known else None


def looks_like_ray(pod: Object) -> bool:
    """The pod bears a label that only pods of Ray jobs have: it must belong to some job."""
    labels = views.labels(pod)
    return labels.get(views.POD_SET) == "submitter" or any(key.startswith("ray.io/") for key in labels)


def pod_set_of(pod: Object, *, submitter: bool) -> tuple[str, bool]:
    """(name of the PodSet, Redis clean-up?), first match of rules 1-6; an empty name: none that is known."""
    labels = views.labels(pod)
    node_type = labels.get(views.NODE_TYPE)
    if node_type == "redis-cleanup":
        return "head", True
    if labels.get(views.POD_SET):
        return labels[views.POD_SET], False
    if node_type == "head":
        return "head", False
    if node_type == "worker":
        return labels.get(views.GROUP, "").lower(), False
    return ("submitter" if submitter else ""), False
