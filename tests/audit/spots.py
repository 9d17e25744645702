"""Where in a script a fault may be planted, so that nothing but the fault could be said about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from raykueue.model import rayjobs, requests, views
from raykueue.model.events import Event
from tests.audit.stories import Json, Script, Span, indexes, spans


@dataclass(frozen=True)
class Spot:
    """Before that line; of a hold, if it is about one."""

    script: Script
    index: int
    span: Span | None = None

    @property
    def hold(self) -> Span:
        assert self.span is not None
        return self.span

    @property
    def job(self) -> Json:
        """The hold's RayJob as it is there; a copy."""
        return self.script.state("RayJob", self.hold.hold.job, self.index)

    @property
    def workload(self) -> Json:
        return self.script.state("Workload", self.hold.hold.ref.uid, self.index)


Spots = Callable[[Script], Iterator[Spot]]


def calm(script: Script) -> Iterator[Spot]:
    """A job runs undisturbed, for as long as one likes."""
    return (Spot(script, span.calm, span) for span in spans(script) if span.calm is not None)


def all_calm(script: Script) -> Iterator[Spot]:
    """So too, and no other job is about to end meanwhile, since there is none."""
    jobs = {views.uid(script.lines[i].obj) for i in indexes(script, "RayJob")}
    return calm(script) if len(jobs) == 1 else iter(())


def last_calm(script: Script) -> Iterator[Spot]:
    """So too, and nobody is admitted afterwards."""
    begins = [span.begin for span in spans(script)]
    return (spot for spot in calm(script) if spot.index > max(begins))


def ended(reason: str) -> Spots:
    """A hold ended by Finished, while a pod of it had yet to go and nobody was given its quota."""

    def of(script: Script) -> Iterator[Spot]:
        for span in spans(script):
            if span.end is None or span.succeeded_by:
                continue
            condition = views.condition(script.lines[span.end].obj, "Finished")
            over = condition is not None and condition["status"] == "True" and condition["reason"] == reason
            if over and any(goes(script, uid) > span.end for uid in span.pods):
                yield Spot(script, span.end, span)

    return of


def alone(script: Script) -> Iterator[Spot]:
    """The first hold begins, of the only RayJob that there is."""
    jobs = {views.uid(script.lines[i].obj) for i in indexes(script, "RayJob")}
    found = spans(script)
    if len(jobs) == 1 and found and found[0].pods and views.is_true(script.lines[found[0].begin].obj, "Admitted"):
        yield Spot(script, found[0].begin, found[0])


def alone_once(script: Script) -> Iterator[Spot]:
    """So too, and it is the only one."""
    return (spot for spot in alone(script) if len(spans(script)) == 1)


def alone_queued(script: Script) -> Iterator[Spot]:
    """That RayJob says it is suspended, and its Workload is about to be made."""
    for spot in alone(script):
        index = next(indexes(script, "Workload"))
        if rayjobs.deployment_status(script.state("RayJob", spot.hold.hold.job, index)) == "Suspended":
            yield Spot(script, index, spot.span)


def published(script: Script) -> Iterator[Spot]:
    """The last status of a ClusterQueue: it tells of one hold that began or ended, and nothing happens afterwards."""
    *others, status = indexes(script, "ClusterQueue")
    unpublished = [i for i in hand_changes(script) if i > others[-1]]
    if len(unpublished) == 1 and unpublished[0] < status:
        yield Spot(script, status)


def hand_changes(script: Script) -> list[int]:
    """Lines at which a hold begins or ends."""
    return sorted(i for span in spans(script) for i in (span.begin, span.end) if i is not None)


def deleted(script: Script) -> Iterator[Spot]:
    """A RayJob is gone, and something of it has yet to go."""
    for index in indexes(script, "RayJob"):
        if type_of(script, index) == "DELETED" and list(descendants(script, index)):
            yield Spot(script, index)


def finished(script: Script) -> Iterator[Spot]:
    """A RayJob is Complete, nothing runs any more, and nobody has asked for its deletion yet."""
    found = spans(script)
    for span in found:
        states = [i for i in indexes(script, "RayJob", span.hold.job) if type_of(script, i) != "DELETED"]
        deletions = [i for i in states if views.deleting(script.lines[i].obj)]
        over = [i for i in states if rayjobs.ended(script.lines[i].obj)]
        if over and deletions and max(over[0], span.end or deletions[0]) < deletions[0] and len(found) == 1:
            yield Spot(script, deletions[0], span)


def goes(script: Script, uid: str) -> int:
    """Index of the line from which on a pod is not live; 0 if it never ends."""
    for i in indexes(script, "Pod", uid):
        if not requests.live(script.lines[i].obj) or type_of(script, i) == "DELETED":
            return i
    return 0


def descendants(script: Script, deleted_at: int) -> Iterator[int]:
    """Of a RayJob: the deletions of its RayClusters and Services that come after its own."""
    uid = views.uid(script.lines[deleted_at].obj)
    for kind in ("RayCluster", "Service"):
        for i in indexes(script, kind):
            owner = views.controller(script.lines[i].obj)
            if i > deleted_at and owner is not None and owner.uid == uid and type_of(script, i) == "DELETED":
                yield i


def type_of(script: Script, index: int) -> str:
    item = script.lines[index].item
    assert isinstance(item, Event)
    return item.type
