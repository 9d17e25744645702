"""What every Kubernetes object has: name, owner, labels, conditions. Read-only, over decoded JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from raykueue.model.events import Object
from raykueue.model.findings import Ref

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
POD_SET = "kueue.x-k8s.io/podset"
JOB_UID = "kueue.x-k8s.io/job-uid"
WORKLOAD = "kueue.x-k8s.io/workload"
MANAGED = "kueue.x-k8s.io/managed"
ELASTIC = "kueue.x-k8s.io/elastic-job"
REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
RAY_CLUSTER = "ray.io/cluster"
NODE_TYPE = "ray.io/node-type"
GROUP = "ray.io/group"


class Owner(NamedTuple):
    """The controller of an object, as its ownerReference tells: known by UID even if the owner itself is not seen."""

    kind: str
    name: str
    uid: str


def spec(obj: Object) -> Mapping[str, Any]:
    """`.spec`, empty if missing."""
    return obj.get("spec") or {}


def status(obj: Object) -> Mapping[str, Any]:
    """`.status`, empty if missing."""
    return obj.get("status") or {}


def uid(obj: Object) -> str:
    """The UID: what an object is known by for ever."""
    return str(obj["metadata"]["uid"])


def name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def namespace(obj: Object) -> str:
    """The namespace; empty for a cluster-scoped object."""
    return str(obj["metadata"].get("namespace") or "")


def labels(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def annotation(obj: Object, key: str) -> str:
    """One annotation; empty if missing."""
    return str((obj["metadata"].get("annotations") or {}).get(key, ""))


def deleting(obj: Object) -> bool:
    """Deletion was asked for; the object is still there."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def ref(kind: str, obj: Object) -> Ref:
    """The object's name for a finding."""
    return Ref(kind, namespace(obj), name(obj), uid(obj))


def controller(obj: Object) -> Owner | None:
    """The one owner with `controller: true`; garbage collection follows it."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return Owner(owner.get("kind", ""), owner.get("name", ""), owner["uid"])
    return None


def condition(obj: Object, kind: str) -> Mapping[str, Any] | None:
    """The condition of that type, or None."""
    for one in status(obj).get("conditions") or ():
        if one.get("type") == kind:
            return dict(one)
    return None


def is_true(obj: Object, kind: str) -> bool:
    """The condition of that type is there and True."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def queue_name(obj: Object) -> str:
    """The LocalQueue a job asks for by label; empty if none."""
    return labels(obj).get(QUEUE_NAME, "")
