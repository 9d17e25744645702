"""What descends from a RayJob: by owner UIDs, through owners that are gone, as garbage collection sees it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from raykueue.audit.books.changes import ObjectChange
from raykueue.model import views
from raykueue.model.events import Object
from raykueue.model.findings import Ref

KINDS = frozenset({"RayCluster", "Job", "Pod", "Service", "Workload", "ServiceAccount", "Role", "RoleBinding"})
_OUR_DOMAINS = ("kueue.x-k8s.io/", "ray.io/")
_OUR_FINALIZERS = frozenset({"batch.kubernetes.io/job-tracking", "foregroundDeletion", "orphan"})
_FOREGROUND = "foregroundDeletion"
_MOST_GENERATIONS = 8


@dataclass(slots=True, eq=False)
class Relative:
    """One object that descends from a RayJob, or that RayJob."""

    ref: Ref
    object: Object | None
    """As last seen; None: it is gone."""
    parent: str = ""
    link: Literal["owner", "label", "orphan"] = "owner"
    """How it is known to descend: `label` if it never had an owner, `orphan` if it was made to lose it."""
    children: set[str] = field(default_factory=set)
    kept: bool = False
    """Remembered although it is gone and has no children."""


class Lineage:
    """Family trees with RayJobs at the top. Constant cost per change, times the generations."""

    def __init__(self) -> None:
        self._all: dict[str, Relative] = {}
        self._by_namespace: dict[str, set[str]] = {}
        self._clusters: dict[tuple[str, str], str] = {}

    def learn(self, change: ObjectChange) -> str:
        """Takes an object in; returns the UID of the RayJob that it descends from, or is; empty: of none."""
        ref, obj = change.ref, change.after
        known = self._all.get(ref.uid)
        if obj is None:
            top = self.top(ref.uid) if known else ""
            if known is not None:
                known.object = None
                self._prune(ref.uid)
            return top
        if known is None:
            if ref.kind != "RayJob" and ref.kind not in KINDS:
                return ""
            parent, link = self._parent(ref, obj)
            if ref.kind != "RayJob" and parent not in self._all:
                return ""
            known = self._add(Relative(ref, obj, parent, link))
        elif known.link == "owner" and known.parent and not _owner(obj):
            self._orphan(known)
        known.object = obj
        return self.top(ref.uid)

    def get(self, uid: str) -> Relative | None:
        return self._all.get(uid)

    def top(self, uid: str) -> str:
        """The UID at the top; empty if it is no RayJob."""
        for _ in range(_MOST_GENERATIONS):
            one = self._all.get(uid)
            if one is None:
                return ""
            if not one.parent:
                return uid if one.ref.kind == "RayJob" else ""
            uid = one.parent
        return ""

    def descendants(self, uid: str) -> Iterator[Relative]:
        """All that exist, in a fixed order."""
        one = self._all.get(uid)
        for child in sorted(one.children) if one else ():
            if self._all[child].object is not None:
                yield self._all[child]
            yield from self.descendants(child)

    def excused(self, one: Relative) -> bool:
        """Somebody else's finalizer keeps it, or keeps a descendant that it waits for."""
        if one.object is None or not views.deleting(one.object):
            return False
        finalizers = one.object["metadata"].get("finalizers") or ()
        if any(not (f.startswith(_OUR_DOMAINS) or f in _OUR_FINALIZERS) for f in finalizers):
            return True
        return _FOREGROUND in finalizers and any(self.excused(below) for below in self.descendants(one.ref.uid))

    def keep(self, uid: str) -> None:
        """Remembers an object for those that may still come, until it is `released`."""
        if uid in self._all:
            self._all[uid].kept = True

    def release(self, uid: str) -> None:
        if uid in self._all:
            self._all[uid].kept = False
            self._prune(uid)

    def forget(self, namespace: str) -> None:
        """Drops everything of a namespace; what comes later there is nobody's child."""
        for uid in self._by_namespace.pop(namespace, ()):
            one = self._all.pop(uid)
            self._clusters.pop((namespace, one.ref.name), None)

    def _parent(self, ref: Ref, obj: Object) -> tuple[str, Literal["owner", "label"]]:
        owner = _owner(obj)
        if owner or ref.kind == "RayJob":
            return owner if ref.kind != "RayJob" else "", "owner"
        if ref.kind == "Workload":
            return views.labels(obj).get(views.JOB_UID, ""), "label"
        return self._clusters.get((ref.namespace, views.labels(obj).get(views.RAY_CLUSTER, "")), ""), "label"

    def _add(self, one: Relative) -> Relative:
        self._all[one.ref.uid] = one
        self._by_namespace.setdefault(one.ref.namespace, set()).add(one.ref.uid)
        if one.parent:
            self._all[one.parent].children.add(one.ref.uid)
        if one.ref.kind == "RayCluster":
            self._clusters[one.ref.namespace, one.ref.name] = one.ref.uid
        return one

    def _orphan(self, one: Relative) -> None:
        """Its owner was deleted with `--cascade=orphan`. A Workload still stands for the job by its label."""
        one.link = "orphan"
        if one.ref.kind == "Workload":
            return
        parent, one.parent = one.parent, ""
        self._all[parent].children.discard(one.ref.uid)
        self._prune(parent)

    def _prune(self, uid: str) -> None:
        """Drops what is gone and has no children, and then perhaps its parent."""
        one = self._all.get(uid)
        while one is not None and one.object is None and not one.children and not one.kept:
            del self._all[one.ref.uid]
            self._by_namespace[one.ref.namespace].discard(one.ref.uid)
            if not self._by_namespace[one.ref.namespace]:
                del self._by_namespace[one.ref.namespace]
            if self._clusters.get((one.ref.namespace, one.ref.name)) == one.ref.uid:
                del self._clusters[one.ref.namespace, one.ref.name]
            above = self._all.get(one.parent)
            if above is not None:
                above.children.discard(one.ref.uid)
            one = above


def foreground(job: Object) -> bool:
    """It is deleted with `--cascade=foreground`: it stays until its descendants are gone."""
    return _FOREGROUND in (job["metadata"].get("finalizers") or ())


def _owner(obj: Object) -> str:
    """UID of its controller, else of its first owner: garbage collection follows any."""
    references = obj["metadata"].get("ownerReferences") or ()
    first = [one for one in references if one.get("controller")] or list(references)
    return str(first[0]["uid"]) if first else ""
