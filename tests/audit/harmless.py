"""Changes to a journal that nobody may mind, and those after which nothing may be judged any more."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from raykueue.model import views
from raykueue.model.events import Barrier, Event, Gap, Record
from raykueue.model.quantities import amounts
from tests.audit import spots
from tests.audit.spots import Spot, Spots
from tests.audit.stories import FIRST_REV, Json, Line, Script, indexes, written


@dataclass(frozen=True)
class Harmless:
    """Nobody says anything."""

    name: str
    spots: Spots
    plant: Callable[[Spot], Script]


@dataclass(frozen=True)
class Spoiling:
    """The record has a hole: a problem of that kind, which makes the run infra."""

    name: str
    kind: str
    spots: Spots
    plant: Callable[[Spot], Script]


def labels_lost(spot: Spot) -> Script:
    """Heads without Kueue's label of their PodSet: KubeRay's own tells it as well."""
    return spot.script.rewrite(
        lambda _, line: line.like("Pod") and views.labels(line.obj).get(views.NODE_TYPE) == "head",
        lambda obj: obj["metadata"]["labels"].pop(views.POD_SET, None),
    )


def queue_name_lost(spot: Spot) -> Script:
    """A running job without its queue's name: it was managed once."""
    return spot.script.rewrite(
        lambda i, line: i >= spot.index and line.like("RayJob", spot.hold.hold.job),
        lambda obj: obj["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name", None),
    )


def quota_shrunk(spot: Spot) -> Script:
    """Quota is lowered while it is used: nobody is evicted for that."""

    def shrink(obj: Json) -> None:
        for group in obj["spec"]["resourceGroups"]:
            for resource in (r for flavor in group["flavors"] for r in flavor["resources"]):
                resource["nominalQuota"] = "0"

    return spot.script.rewrite(lambda i, line: i >= spot.index and line.like("ClusterQueue"), shrink)


def a_deleting_workload(spot: Spot) -> Script:
    """A second Workload that is on its way out already, for less than Kueue may take to admit it."""
    second = spot.workload
    second["metadata"] |= {"name": "second", "uid": "second", "deletionTimestamp": "2026-10-01T00:00:00Z"}
    second["status"] = {}
    return spot.script.meanwhile(spot.index, 4, "Workload", second)


def placed_by_labels(spot: Spot) -> Script:
    """Flavors have labels, and nodes and pods carry them."""
    labels = {"pool": "batch"}
    script = spot.script
    for kind, part, key in (
        ("ResourceFlavor", "spec", "nodeLabels"),
        ("Node", "metadata", "labels"),
        ("Pod", "spec", "nodeSelector"),
    ):
        script = _with(labels, script, kind, part, key)
    return script


def _with(labels: Json, script: Script, kind: str, part: str, key: str) -> Script:
    """Every object of a kind has these labels as well."""
    return script.rewrite(
        lambda _, line: line.like(kind),
        lambda obj: obj[part].update({key: {**obj[part].get(key, {}), **labels}}),
    )


def another_spelling(spot: Spot) -> Script:
    """The same quantities, written otherwise: 2 as 2000m, 1Gi as 1073741824000m."""

    def respell(quantities: Json) -> None:
        for resource, value in amounts(quantities).items():
            quantities[resource] = f"{value if resource == 'cpu' else value * 1000}m"

    def pod(obj: Json) -> None:
        for container in obj["spec"]["containers"]:
            respell((container.get("resources") or {}).get("requests") or {})

    def workload(obj: Json) -> None:
        for one in (views.status(obj).get("admission") or {}).get("podSetAssignments", ()):
            respell(one["resourceUsage"])

    script = spot.script.rewrite(lambda _, line: line.like("Pod"), pod)
    return script.rewrite(lambda _, line: line.like("Workload"), workload)


def time_passes(spot: Spot) -> Script:
    """A job runs on for minutes."""
    return spot.script.pause(spot.index, 300)


def a_repeated_write(spot: Spot) -> Script:
    """Everything is written once more, and nothing is new."""
    lines: list[Line] = []
    for line in spot.script.lines:
        lines.append(line)
        if isinstance(line.item, Event) and line.item.type != "DELETED":
            lines.append(written(line.t, line.item.kind, line.obj))
    return spot.script.with_lines(lines)


def arrived_out_of_order(spot: Spot) -> Script:
    """Of each two events that follow upon each other the second one arrives first."""

    def swap(records: list[Record]) -> list[Record]:
        header, *events = records
        swapped: list[Record] = [header]
        for one, other in zip(events[::2], events[1::2], strict=False):
            swapped += [
                dataclasses.replace(other, arrived=one.arrived),
                dataclasses.replace(one, arrived=other.arrived),
            ]
        return swapped + (events[-1:] if len(events) % 2 else [])

    return dataclasses.replace(spot.script, finish=swap)


def a_gap(spot: Spot) -> Script:
    """Events of pods may have been missed for a while."""
    rev, t = FIRST_REV + spot.index, spot.script.lines[spot.index].t
    return dataclasses.replace(spot.script, finish=lambda records: [*records, Gap("Pod", rev, rev + 1, t, "410 Gone")])


def a_lost_event(spot: Spot) -> Script:
    """Writes of a pod are missed; the next list shows it as it is now, and the stream says where it has a hole."""
    uid = min(spot.hold.pods)
    mine = [i for i in indexes(spot.script, "Pod", uid) if i < spot.index]
    last = spot.script.lines[mine[-1]]
    assert isinstance(last.item, Event)
    relisted = Line(last.t, dataclasses.replace(last.item, type="ADDED", listed=True))
    lines = [line for i, line in enumerate(spot.script.lines) if i not in mine]
    script = spot.script.with_lines(lines).insert(spot.index - len(mine), relisted)
    gap = Gap("Pod", FIRST_REV + mine[0] - 1, FIRST_REV + spot.index, last.t, "410 Gone")
    return dataclasses.replace(script, finish=lambda records: [*records, gap])


def a_late_event(spot: Spot) -> Script:
    """A barrier was passed before an event that it should have proven to be there."""

    def delay(records: list[Record]) -> list[Record]:
        place = spot.index + 1  # behind the header
        late = records.pop(place)
        before, after = records[:place], records[place:]
        assert isinstance(late, Event)
        return [*before, Barrier(late.rev, late.arrived), late, *after]

    return dataclasses.replace(spot.script, finish=delay)


def owner_never_seen(spot: Spot) -> Script:
    """The RayCluster of pods is in no journal, and no label or annotation tells their job."""

    def forget(obj: Json) -> None:
        obj["metadata"]["labels"].pop("ray.io/cluster", None)
        obj["metadata"].pop("annotations", None)

    script = spot.script.with_lines(line for line in spot.script.lines if not line.like("RayCluster"))
    return script.rewrite(lambda _, line: line.like("Pod") and _of_ray(line.obj), forget)


def _of_ray(pod: Json) -> bool:
    return views.labels(pod).get(views.NODE_TYPE) in ("head", "worker")


HARMLESS = (
    Harmless("labels lost", spots.calm, labels_lost),
    Harmless("queue's name lost", spots.calm, queue_name_lost),
    Harmless("quota shrunk", spots.last_calm, quota_shrunk),
    Harmless("deleting Workload", spots.calm, a_deleting_workload),
    Harmless("placed by labels", spots.calm, placed_by_labels),
    Harmless("another spelling", spots.calm, another_spelling),
    Harmless("time passes", spots.all_calm, time_passes),
    Harmless("repeated writes", spots.calm, a_repeated_write),
    Harmless("out of order", spots.calm, arrived_out_of_order),
)

SPOILING = (
    Spoiling("gap", "gap", spots.calm, a_gap),
    Spoiling("lost event", "gap", spots.calm, a_lost_event),
    Spoiling("late event", "late", spots.calm, a_late_event),
    Spoiling("owner never seen", "unattributed", spots.calm, owner_never_seen),
)
