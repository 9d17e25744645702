"""What a journal says of one job after its end: how it ended, what is left of it, and when what is gone went."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from raykueue.model.deletion.expected import Part, Status
from raykueue.model.events import Event, Object
from raykueue.model.views import NODE_TYPE, controller, deleting, labels, status, uid

_TERMINAL = ("Complete", "Failed")


@dataclass(frozen=True, slots=True)
class End:
    """How the RayJob said that it ended, the first time that it did."""

    status: Status
    time: float
    """status.endTime, in seconds since the epoch: whole ones."""
    arrived: int
    """When that was seen, in nanoseconds since the epoch."""


def end(events: Iterable[Event], job: str) -> End | None:
    """The end of the RayJob of that UID; None: it has not ended."""
    for event in events:
        if event.kind == "RayJob" and uid(event.object) == job:
            about = status(event.object)
            if about.get("jobDeploymentStatus") in _TERMINAL:
                said = Status(
                    str(about["jobDeploymentStatus"]), str(about.get("jobStatus", "")), str(about.get("reason", ""))
                )
                ended = datetime.fromisoformat(str(about["endTime"])) if "endTime" in about else None
                return End(said, ended.timestamp() if ended else 0.0, event.arrived)
    return None


def left(events: Iterable[Event], job: str) -> frozenset[Part]:
    """What exists of it at the last event, also if it is about to go."""
    return frozenset(part for part, seen in _objects(events, job) if not seen.gone)


def went(events: Iterable[Event], job: str) -> dict[Part, float]:
    """When each part that is not left was told to go, the last object of it: seconds after status.endTime.

    Empty before the end. Objects that were gone by then (of earlier attempts) don't count.
    """
    listed = list(events)
    ended = end(listed, job)
    if ended is None:
        return {}
    told: dict[Part, float] = {}
    for part, seen in _objects(listed, job):
        if seen.gone and seen.told >= ended.arrived:
            told[part] = max(told.get(part, 0.0), seen.told / 1e9 - ended.time)
    for part in left(listed, job):
        told.pop(part, None)
    return told


@dataclass(slots=True)
class _Seen:
    told: int = 0
    """When its deletion was first seen to be asked for, or done; 0: never."""
    gone: bool = False


def _objects(events: Iterable[Event], job: str) -> list[tuple[Part, _Seen]]:
    """Every object of the job that there ever was, with its part."""
    listed = list(events)
    # First: a pod may be seen before the cluster that it belongs to.
    clusters = {uid(e.object) for e in listed if e.kind == "RayCluster" and _owned_by(e.object, job)}
    submitters = {uid(e.object) for e in listed if e.kind == "Job" and _owned_by(e.object, job)}
    found: dict[str, tuple[Part, _Seen]] = {}
    for event in listed:
        identity = uid(event.object)
        if identity not in found:
            part = _part(event.kind, event.object, job, clusters, submitters)
            if part is None:
                continue
            found[identity] = part, _Seen()
        seen = found[identity][1]
        if not seen.told and (event.type == "DELETED" or deleting(event.object)):
            seen.told = event.arrived
        seen.gone = event.type == "DELETED"
    return list(found.values())


def _part(kind: str, obj: Object, job: str, clusters: set[str], submitters: set[str]) -> Part | None:
    if kind == "RayJob":
        return Part.RAYJOB if uid(obj) == job else None
    if kind == "RayCluster":
        return Part.CLUSTER if uid(obj) in clusters else None
    if kind == "Job":
        return Part.SUBMITTER if uid(obj) in submitters else None
    owner = controller(obj) if kind == "Pod" else None
    if owner is None:
        return None
    if owner.uid in clusters:
        return {"head": Part.HEAD, "worker": Part.WORKERS}.get(labels(obj).get(NODE_TYPE, ""))
    return Part.SUBMITTER if owner.uid in submitters else None


def _owned_by(obj: Object, job: str) -> bool:
    owner = controller(obj)
    return owner is not None and owner.uid == job
