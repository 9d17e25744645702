"""What the journal says of one job: its objects, and when each state began."""

from __future__ import annotations

from dataclasses import dataclass

from raykueue.model.events import Event, Moment, Object
from raykueue.model.views import NODE_TYPE, controller, deleting, is_true, labels, spec, status, uid
from raykueue.model.workloads import active
from raykueue.run.feed import Feed
from raykueue.run.states import ALL, Admitted, Evicted, Gone, Pending, Running, State, Suspended

_OWNING = ("RayCluster", "Job", "Workload", "Service")
_OWNED = (*_OWNING, "Pod", "ServiceAccount", "Role", "RoleBinding")
"""What KubeRay and Kueue make for a RayJob; the last three for a RayCluster with an autoscaler."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A state of the job began."""

    state: State
    """With its detail."""
    moment: Moment


class History:
    """One job, by the UID of its RayJob, in one feed."""

    def __init__(self, feed: Feed, namespace: str, name: str, job_uid: str) -> None:
        self.feed = feed
        self.namespace = namespace
        self.name = name
        self.uid = job_uid

    def rayjob(self) -> Object | None:
        """The RayJob as last seen, or None once it is gone."""
        events = self.feed.history("RayJob", self.uid)
        return events[-1].object if events and events[-1].type != "DELETED" else None

    def workload(self) -> Object | None:
        """Its newest Workload that is not being deleted."""
        mine = [one for one in self.feed.objects("Workload") if self._owns(one) and not deleting(one)]
        return max(mine, key=lambda one: int(one["metadata"]["resourceVersion"]), default=None)

    def pods(self) -> list[Object]:
        """Its pods that exist: of its RayClusters, and of its submitter Job."""
        parents = self._parents()
        return [
            pod for pod in self.feed.objects("Pod") if (owner := controller(pod)) is not None and owner.uid in parents
        ]

    def reasons(self) -> set[str]:
        """What a kubelet ever said of its containers: why one waits, or how it ended, also before a restart."""
        parents = self._parents()
        found: set[str] = set()
        for event in self.feed.events:
            if event.kind == "Pod" and (owner := controller(event.object)) is not None and owner.uid in parents:
                found |= _reasons(event.object)
        return found

    def descendants(self) -> list[tuple[str, Object]]:
        """(kind, object) of everything that it owns, at any depth, and that still exists."""
        found: list[tuple[str, Object]] = []
        owners = {self.uid}
        for kind in _OWNING:
            # Owners may be gone already, and what they own not yet.
            owners |= {uid(one) for one in self._ever(kind) if self._owned_by(one, owners)}
        for kind in _OWNED:
            found += [(kind, one) for one in self.feed.objects(kind) if self._owned_by(one, owners)]
        return found

    def is_in(self, state: State) -> bool:
        """Whether the job is in this state now."""
        if state.name == Gone.name:
            return self._gone()
        if state.name == Pending.name and self._is_counted_as_pending():
            return True
        current = self.rayjob() if state.kind == "RayJob" else self.workload()
        return current is not None and state.holds(current) and state.detail in ("", state.explain(current))

    def begun(self) -> list[Begun]:
        """Every beginning of every state so far, by revision."""
        found: list[Begun] = []
        for state in ALL:
            for events in self._events_of(state.kind):
                before = False
                for event in events:
                    now = event.type == "DELETED" if state is Gone else state.holds(event.object)
                    if now and not before:
                        found.append(Begun(state(state.explain(event.object)), self._moment(event)))
                    before = now
        return sorted(found, key=lambda begun: begun.moment.rev)

    def story(self) -> list[State]:
        """What happened to it from the first admission on, in order."""
        told: list[State] = []
        for state in (begun.state for begun in self.begun() if begun.state.told):
            if not told and state.name != Admitted.name:
                continue
            if state.name == Suspended.name and not {Running.name, Evicted.name} & {one.name for one in told}:
                continue  # every queued job is created suspended, and KubeRay may say so after Kueue has admitted it
            told.append(state)
        return told

    def placed(self) -> Moment | None:
        """When the last of its head and worker pods got a node; None while one has none, or is not there."""
        last: Event | None = None
        pods = [pod for pod in self.pods() if NODE_TYPE in labels(pod)]
        if len(pods) < self._wanted_pods():
            return None
        for pod in pods:
            bound = next((e for e in self.feed.history("Pod", uid(pod)) if spec(e.object).get("nodeName")), None)
            if bound is None:
                return None
            last = bound if last is None or bound.rev > last.rev else last
        return self._moment(last) if last is not None else None

    def hopeless(self, state: State) -> State | None:
        """The state that the job is in and after which `state` can't begin any more."""
        return next((other for other in ALL if other.name in state.after and self.is_in(other)), None)

    def _parents(self) -> set[str]:
        """UIDs of what has its pods: its RayClusters, and its submitter Job."""
        return {uid(one) for kind in ("RayCluster", "Job") for one in self._ever(kind) if self._owns(one)}

    def _wanted_pods(self) -> int:
        """Its head, and the workers that it asks for."""
        events = self.feed.history("RayJob", self.uid)
        cluster = spec(events[-1].object).get("rayClusterSpec", {}) if events else {}
        return 1 + sum(int(group.get("replicas", 0)) for group in cluster.get("workerGroupSpecs", ()))

    def _is_counted_as_pending(self) -> bool:
        """Kueue counts as many pending Workloads in its LocalQueue as there are.

        A Workload like another one that has just been found not to fit is not looked at, so it never gets a condition
        that says so (feature gate SchedulingEquivalenceHashing, on from Kueue 0.18); but it is counted.
        """
        workload = self.workload()
        if workload is None or not _waits(workload):
            return False
        name = spec(workload).get("queueName", "")
        queue = self.feed.object("LocalQueue", self.namespace, name)
        waiting = [one for one in self.feed.objects("Workload") if spec(one).get("queueName") == name and _waits(one)]
        return queue is not None and int(status(queue).get("pendingWorkloads", 0)) >= len(waiting)

    def _gone(self) -> bool:
        events = self.feed.history("RayJob", self.uid)
        return bool(events) and events[-1].type == "DELETED"

    def _events_of(self, kind: str) -> list[list[Event]]:
        if kind == "RayJob":
            return [self.feed.history(kind, self.uid)]
        return [self.feed.history(kind, uid(one)) for one in self._ever(kind) if self._owns(one)]

    def _ever(self, kind: str) -> list[Object]:
        seen = {uid(event.object): event.object for event in self.feed.events if event.kind == kind}
        return list(seen.values())

    def _owns(self, obj: Object) -> bool:
        owner = controller(obj)
        return owner is not None and owner.uid == self.uid

    def _owned_by(self, obj: Object, owners: set[str]) -> bool:
        return any(owner["uid"] in owners for owner in obj["metadata"].get("ownerReferences", ()))

    def _moment(self, event: Event) -> Moment:
        # t* of this revision, from what this test sees: no event with a later revision can have been written before.
        later = [other.arrived for other in self.feed.events if other.rev >= event.rev]
        return Moment(event.rev, min(later))


def _waits(workload: Object) -> bool:
    return active(workload) and not is_true(workload, "QuotaReserved") and not is_true(workload, "Finished")


def _reasons(pod: Object) -> set[str]:
    containers = [*status(pod).get("initContainerStatuses", ()), *status(pod).get("containerStatuses", ())]
    states = [state for one in containers for kind in ("state", "lastState") for state in one.get(kind, {}).values()]
    return {str(state["reason"]) for state in states if state.get("reason")}
