"""A finding of its own: deletion rules for success and for failure, and an end that neither of them names.

No rule of the ledger can see it: such a job is never queued, so nobody's quota is involved. Its cluster runs until
somebody deletes it, and nothing says so (kuberay#5184, controllers/ray/rayjob_controller.go:1265-1320@v1.6.2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from raykueue.model.deletion.expected import REQUEUE_SECONDS, Part
from raykueue.model.deletion.observed import left
from raykueue.model.events import Event, Moment, Object
from raykueue.model.findings import Finding
from raykueue.model.quantities import add, describe_all
from raykueue.model.requests import effective, live
from raykueue.model.views import controller, deleting, ref, spec, status, uid

RULE = "cleaned-up"
CAUSE = "no-rule-matches"


def unmatched(events: Iterable[Event], job: str) -> Finding | None:
    """What that job left behind though it has rules for success and failure, for longer than KubeRay may take.

    Until somebody deletes the RayJob, or the last event. None: there is nothing to be said.
    """
    seen = list(events)
    ending = next((e for e in seen if _is(e, job) and _has_ended(e.object)), None)
    if ending is None or not _wants_all(spec(ending.object)) or _matches(ending.object):
        return None
    stop = next((e for e in seen if _is(e, job) and (e.type == "DELETED" or deleting(e.object))), seen[-1])
    meanwhile = [event for event in seen if event.arrived <= stop.arrived and event is not stop]
    if stop.rev <= ending.rev or not left(meanwhile, job) & {Part.HEAD, Part.WORKERS, Part.CLUSTER}:
        return None
    seconds = (stop.arrived - ending.arrived) / 1e9
    if seconds < REQUEUE_SECONDS:
        return None
    return _finding(ending, stop, seconds, _live_pods(meanwhile, job))


def _finding(ending: Event, stop: Event, seconds: float, pods: list[Object]) -> Finding:
    about = ref("RayJob", ending.object)
    peak: dict[str, int] = {}
    for pod in pods:
        peak = add(peak, effective(pod))
    said = status(ending.object)
    return Finding(
        id=hashlib.sha256(f"{RULE} {about.uid} {ending.rev}".encode()).hexdigest()[:12],
        rule=RULE,
        klass="hazard",
        cause=CAUSE,
        text=f"{about}: no deletion rule of it names its end ({said['jobDeploymentStatus']}, jobStatus "
        f"{said.get('jobStatus') or 'empty'}); {len(pods)} pods used {describe_all(peak)} for {seconds * 1000:.0f} ms, "
        "until it was deleted by hand",
        objects=(about, *(ref("Pod", pod) for pod in pods)),
        begin=Moment(ending.rev, ending.arrived),
        end=Moment(stop.rev, stop.arrived),
        namespace=about.namespace,
        peak=peak,
        resource_seconds={resource: value * seconds for resource, value in peak.items()},
        seconds=(seconds, seconds),
        order_proof="arrival",
    )


def _is(event: Event, job: str) -> bool:
    return event.kind == "RayJob" and uid(event.object) == job


def _has_ended(rayjob: Object) -> bool:
    return status(rayjob).get("jobDeploymentStatus") in ("Complete", "Failed")


def _rules(about: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rules = (about.get("deletionStrategy") or {}).get("deletionRules") or ()
    return [rule for rule in rules if rule.get("policy") != "DeleteNone"]


def _wants_all(about: Mapping[str, Any]) -> bool:
    named = {rule.get("condition", {}).get("jobStatus") for rule in _rules(about)}
    return {"SUCCEEDED", "FAILED"} <= named


def _matches(rayjob: Object) -> bool:
    said = status(rayjob)
    conditions = [rule.get("condition", {}) for rule in _rules(spec(rayjob))]
    return any(
        said.get(name) == condition[name]
        for condition in conditions
        for name in ("jobStatus", "jobDeploymentStatus")
        if condition.get(name)
    )


def _live_pods(events: list[Event], job: str) -> list[Object]:
    owners = {uid(e.object) for e in events if e.kind in ("RayCluster", "Job") and _owner(e.object) == job}
    last = {uid(e.object): e for e in events if e.kind == "Pod" and _owner(e.object) in owners}
    return [e.object for e in last.values() if e.type != "DELETED" and live(e.object)]


def _owner(obj: Object) -> str:
    owner = controller(obj)
    return owner.uid if owner is not None else ""
