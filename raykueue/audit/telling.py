"""What one write changed about an object, as a person would say it: "Evicted (Preempted)", "deleted", "on node-1"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from raykueue.audit.books.changes import ObjectChange
from raykueue.model import requests, views
from raykueue.model.events import Object
from raykueue.model.quantities import in_units, unit
from raykueue.model.queues import FlavorResource, booked, quota_spec
from raykueue.model.workloads import active, charge, holds

_LONG = 24
_KEPT = 18


def what_changed(change: ObjectChange) -> str:
    """In a few words; empty if nothing did that matters to quota, or that an observer would call a state."""
    before, after = change.before, change.after
    if after is None:
        return "deleted"
    told = ["created"] if before is None else []
    if views.deleting(after) and not (before is not None and views.deleting(before)):
        told.append("deletion asked for")
    match change.ref.kind:
        case "Workload":
            told += _workload(before, after)
        case "Pod":
            told += _pod(before, after)
        case "RayJob":
            told += _rayjob(before, after)
        case "RayCluster":
            told += _moved("state", views.status(before or {}).get("state"), views.status(after).get("state"))
        case "ClusterQueue":
            told += _queue(before, after)
        case "Cohort":
            told += ["spec changed"] if before is not None and quota_spec(before) != quota_spec(after) else []
    return ", ".join(told)


def short_name(name: str) -> str:
    """The end of a long name, which tells it from its likes."""
    if len(name) <= _LONG:
        return name
    end = name[-_KEPT:]
    return f"…{end.partition('-')[2] or end}" if "-" in end[:-1] else f"…{end}"


def _workload(before: Object | None, after: Object) -> Iterator[str]:
    was = _conditions(before)
    for kind, (status, reason) in _conditions(after).items():
        if was.get(kind, ("", ""))[0] == status or (kind not in was and status != "True"):
            continue
        yield (kind if status == "True" else f"{kind} {status}") + (f" ({reason})" if reason not in ("", kind) else "")
    if active(after) != (before is None or active(before)):
        yield "activated" if active(after) else "deactivated"
    if before is not None and holds(before) and holds(after) and charge(before).totals != charge(after).totals:
        yield "charge changed"


def _conditions(workload: Object | None) -> dict[str, tuple[str, str]]:
    listed = views.status(workload or {}).get("conditions") or ()
    return {str(c.get("type")): (str(c.get("status")), str(c.get("reason", ""))) for c in listed}


def _pod(before: Object | None, after: Object) -> Iterator[str]:
    if requests.gated(after) and before is None:
        yield "gated"
    if before is not None and requests.gated(before) and not requests.gated(after):
        yield "gates removed"
    if requests.bound(after) and not (before is not None and requests.bound(before)):
        yield f"on {views.spec(after)['nodeName']}"
    phase = views.status(after).get("phase")
    if phase not in (None, "Pending") and phase != views.status(before or {}).get("phase"):
        yield str(phase)
    if before is not None and requests.effective(before) != requests.effective(after):
        yield "resized"


def _rayjob(before: Object | None, after: Object) -> Iterator[str]:
    was, now = views.status(before or {}), views.status(after)
    yield from _moved("suspend", views.spec(before or {}).get("suspend"), views.spec(after).get("suspend"))
    yield from _moved("", was.get("jobDeploymentStatus"), now.get("jobDeploymentStatus"))
    yield from _moved("jobStatus", was.get("jobStatus"), now.get("jobStatus"))


def _moved(what: str, was: Any, now: Any) -> Iterator[str]:
    if now != was and now not in (None, ""):
        yield f"{what} {str(now).lower() if isinstance(now, bool) else now}".strip()


def _queue(before: Object | None, after: Object) -> Iterator[str]:
    if before is None:
        return
    was, now = quota_spec(before), quota_spec(after)
    if was.parent != now.parent:
        yield f"cohort {was.parent or '(none)'} → {now.parent or '(none)'}"
    for key in sorted(was.quotas.keys() | now.quotas.keys()):
        old, new = was.quotas.get(key), now.quotas.get(key)
        if old != new:
            yield _from_to("quota", key, old.nominal if old else 0, new.nominal if new else 0)
    for what, lines, news in (
        ("usage", booked(before).usage, booked(after).usage),
        ("reservation", booked(before).reservation, booked(after).reservation),
    ):
        for key in sorted(lines.keys() | news.keys()):
            old_total = lines[key].total if key in lines else 0
            new_total = news[key].total if key in news else 0
            if old_total != new_total:
                yield _from_to(what, key, old_total, new_total)


def _from_to(what: str, key: FlavorResource, old: int, new: int) -> str:
    return f"{unit(key[1])} {what} {in_units(key[1], old)} → {in_units(key[1], new)}"
