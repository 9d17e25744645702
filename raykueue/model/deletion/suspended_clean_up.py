"""A finding of its own: a RayCluster that can't go, because the Job that is to clean Redis after it is suspended.

With GCS fault tolerance KubeRay keeps a deleted RayCluster until that Job has ended (kuberay
ray-operator/controllers/ray/raycluster_controller.go:255-353@v1.6.2). For Kueue the Job is a child of a RayJob that
holds no quota any more, so it is suspended, and nobody resumes it (kueue
pkg/controller/jobframework/reconciler.go:766-788@v0.19.2; #12778 mends the same for a RayService). No pod is left, so
no rule of the ledger sees it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from raykueue.model.deletion.expected import REQUEUE_SECONDS
from raykueue.model.events import Event, Moment
from raykueue.model.findings import Finding
from raykueue.model.views import controller, deleting, ref, spec, uid

RULE = "cleaned-up"
CAUSE = "clean-up-suspended"


def suspended_clean_up(events: Iterable[Event], job: str) -> Finding | None:
    """The RayCluster of that job which waited for a suspended Job, for longer than KubeRay takes to look again.

    From when both are so until the Job is resumed, or either is gone, or the last event. None: nothing is to be said.
    """
    seen = list(events)
    clusters = [e for e in seen if e.kind == "RayCluster" and e.type != "DELETED" and _owner(e) == job]
    for cluster in {uid(e.object): e for e in reversed(clusters) if deleting(e.object)}.values():
        cleaning = [e for e in seen if e.kind == "Job" and e.type != "DELETED" and _owner(e) == uid(cluster.object)]
        # Somebody may resume it, and suspend it again: each time it waits is looked at for itself.
        for suspended in (e for e in cleaning if spec(e.object).get("suspend")):
            same = (uid(cluster.object), uid(suspended.object))
            stop = next((e for e in seen if e.rev > suspended.rev and uid(e.object) in same and _is_over(e)), seen[-1])
            begin = max(cluster, suspended, key=lambda event: event.rev)
            if (stop.arrived - begin.arrived) / 1e9 > REQUEUE_SECONDS:
                return _finding(cluster, suspended, begin, stop)
    return None


def _is_over(event: Event) -> bool:
    return event.type == "DELETED" or (event.kind == "Job" and not spec(event.object).get("suspend"))


def _finding(cluster: Event, suspended: Event, begin: Event, stop: Event) -> Finding:
    about, cleaner = ref("RayCluster", cluster.object), ref("Job", suspended.object)
    seconds = (stop.arrived - begin.arrived) / 1e9
    return Finding(
        id=hashlib.sha256(f"{RULE} {about.uid} {begin.rev}".encode()).hexdigest()[:12],
        rule=RULE,
        klass="hazard",
        cause=CAUSE,
        text=f"{about}: deleted, and kept for {seconds * 1000:.0f} ms by its finalizer: {cleaner}, which is to clean "
        "Redis, is suspended",
        objects=(about, cleaner),
        begin=Moment(begin.rev, begin.arrived),
        end=Moment(stop.rev, stop.arrived),
        namespace=about.namespace,
        seconds=(seconds, seconds),
        order_proof="arrival",
    )


def _owner(event: Event) -> str:
    owner = controller(event.object)
    return owner.uid if owner is not None else ""
