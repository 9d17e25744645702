"""Rule `placed-as-assigned`: every pod carries the node labels and tolerations of its payer's flavors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from raykueue.audit.books.changes import Change, HoldChange, ObjectChange, PodChange
from raykueue.audit.books.entities import Hold, Pod, PodState
from raykueue.audit.books.fold import Books
from raykueue.audit.rules.rule import Rule, finding_id, lasting
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds, ns
from raykueue.audit.windows import Window
from raykueue.model import placement, views
from raykueue.model.events import Moment, Object
from raykueue.model.findings import Class, Finding, Ref
from raykueue.model.placement import Placement
from raykueue.model.quantities import PODS, add, describe_all, sub
from raykueue.model.rayjobs import wants_suspension
from raykueue.model.workloads import elastic

_CLASS: dict[str, Class] = {
    "selector-missing": "contract",
    "selector-differs": "contract",
    "toleration-missing": "contract",
    "wrong-node": "invariant",
}
_SHOWN = 20

V = TypeVar("V")


class _Recent(Generic[V]):
    """A value as it is, and as it was before its last edit: whoever acts on it may not have seen that yet."""

    def __init__(self, value: V) -> None:
        self.now = self.before = value
        self.edited: int | None = None

    def update(self, value: V, t: int) -> None:
        if value != self.now:
            self.before, self.now, self.edited = self.now, value, t

    def fresh(self, t: int, lag: int) -> bool:
        return self.edited is not None and t - self.edited <= lag


@dataclass(slots=True, eq=False)
class _Misplaced:
    """Pods of one PodSet of one hold that are wrong in one way."""

    hold: Hold
    job: Ref
    pod_set: str
    cause: str
    lacks: str
    window: Window
    flavors: tuple[str, ...]
    pods: dict[str, Ref] = field(default_factory=dict)
    live: dict[str, Mapping[str, int]] = field(default_factory=dict)
    """What each of its pods asks that has not ended."""
    level: dict[str, int] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)


class PlacedAsAssigned(Rule):
    """Judges each pod at its creation and at its binding.

    What it must carry are its payer's flavors as they were when the job was unsuspended: that is when Kueue injects
    them. An edit so shortly before that Kueue may not have seen it counts either way. Not judged: elastic jobs, and
    clean-up pods, which follow the head that they clean up after.
    """

    name: ClassVar[str] = "placed-as-assigned"
    sentence: ClassVar[str] = "every pod carries the node labels and tolerations of its payer's flavors"
    klass: ClassVar[Class] = "contract"
    why: ClassVar[str] = "a pod on other nodes uses what nobody booked, and leaves idle what was booked"
    source: ClassVar[str] = (
        "kueue apis/kueue/v1beta2/resourceflavor_types.go:53-60, :88-89, pkg/podset/podset.go:58-96@v0.19.2"
    )
    thresholds: ClassVar[tuple[str, ...]] = ("lag",)
    sees: ClassVar[frozenset[type | str] | None] = frozenset(
        {PodChange, HoldChange, "ResourceFlavor", "Node", "RayJob", "RayCluster"}
    )

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        super().__init__(books, thresholds, pair)
        self._lag = ns(thresholds.lag)
        self._flavors: dict[str, _Recent[Placement]] = {}
        self._nodes: dict[str, _Recent[Mapping[str, str]]] = {}
        self._in_force: dict[str, dict[str, tuple[Placement, ...]]] = {}
        self._misplaced: dict[tuple[str, str, str], _Misplaced] = {}
        self._places: dict[str, _Misplaced] = {}
        self._found: list[_Misplaced] = []

    def see(self, change: Change) -> None:
        match change:
            case PodChange():
                self._pod(change.pod, change.before, change.after, change.moment)
            case HoldChange() if change.after is None:
                self._in_force.pop(change.hold.payer, None)
            case ObjectChange() if change.ref.kind == "ResourceFlavor":
                _note(self._flavors, change, placement.of_flavor)
            case ObjectChange() if change.ref.kind == "Node":
                _note(self._nodes, change, views.labels)
            case ObjectChange() if change.ref.kind in ("RayJob", "RayCluster"):
                self._unsuspended(change)

    def findings(self) -> Iterator[Finding]:
        for one in self._found:
            yield self._finding(one)

    def forget(self, scope: Scope) -> None:
        self._found = [one for one in self._found if not _owns(scope, one.hold)]
        self._misplaced = {k: one for k, one in self._misplaced.items() if not _owns(scope, one.hold)}
        self._places = {uid: one for uid, one in self._places.items() if not _owns(scope, one.hold)}
        for payer in list(self._in_force):
            hold = self.books.hold(payer)
            if hold is None or _owns(scope, hold):
                del self._in_force[payer]
        for name in scope.flavors:
            self._flavors.pop(name, None)

    # -- what is asked for

    def _unsuspended(self, change: ObjectChange) -> None:
        before, after = change.before, change.after
        if after is None or wants_suspension(after) or (before is not None and not wants_suspension(before)):
            return
        job = self.books.job(change.ref.uid)
        for hold in job.holds if job else ():
            in_force = {p: self._asked(hold, p, change.moment.t) for p in hold.charge.pod_sets}
            self._in_force[hold.payer] = in_force

    def _asked(self, hold: Hold, pod_set: str, t: int) -> tuple[Placement, ...]:
        """What the PodSet's pods must carry; several: any of them will do. Nothing if a flavor of it is not known."""
        names = _flavors(hold, pod_set)
        known = [self._flavors[name] for name in names if name in self._flavors]
        if len(known) < len(names):
            return ()
        asked = [placement.union(one.now for one in known)]
        if any(one.fresh(t, self._lag) for one in known):
            asked.append(placement.union(one.before if one.fresh(t, self._lag) else one.now for one in known))
        return tuple(asked)

    # -- what pods carry

    def _pod(self, pod: Pod, before: PodState | None, after: PodState | None, moment: Moment) -> None:
        uid = pod.ref.uid
        if before is None and after is not None and not pod.before_journal:
            self._born(pod, after, moment)
        if after is not None and after.bound and (before is None or not before.bound) and not pod.before_journal:
            self._bound(pod, after, moment)
        one = self._places.get(uid)
        if one is not None:
            self._settle(one, uid, after, moment)

    def _wanted(self, pod: Pod, payer: Hold | None, moment: Moment) -> tuple[Placement, ...]:
        if payer is None or payer.end is not None or pod.pod_set not in payer.charge.pod_sets:
            return ()
        if pod.cleanup or not pod.job.judged:
            return ()
        if (pod.job.object is not None and elastic(pod.job.object)) or elastic(payer.workload):
            return ()
        in_force = self._in_force.get(payer.payer)
        if in_force is not None:
            return in_force.get(pod.pod_set, ())
        edited = [name for name in _flavors(payer, pod.pod_set) if name in self._flavors and self._flavors[name].edited]
        return () if payer.before_journal and edited else self._asked(payer, pod.pod_set, moment.t)

    def _born(self, pod: Pod, state: PodState, moment: Moment) -> None:
        wrongs = [_wrong(pod.object, wanted) for wanted in self._wanted(pod, state.payer, moment)]
        first = wrongs[0] if all(wrongs) and wrongs else None
        if first is not None:
            self._raise(pod, state, *first, moment)

    def _bound(self, pod: Pod, state: PodState, moment: Moment) -> None:
        name = str(views.spec(pod.object).get("nodeName", ""))
        known = self._places.get(pod.ref.uid)
        if known is not None:
            known.nodes.add(name)
            return
        node = self._nodes.get(name)
        has = [] if node is None else [node.now, node.before] if node.fresh(moment.t, self._lag) else [node.now]
        lacks = [placement.misfits(h, wanted.labels) for wanted in self._wanted(pod, state.payer, moment) for h in has]
        if lacks and all(lacks):
            self._raise(pod, state, "wrong-node", f"node {name} has {_told(lacks[0])}", moment)

    def _raise(self, pod: Pod, state: PodState, cause: str, lacks: str, moment: Moment) -> None:
        assert state.payer is not None
        key = (state.payer.payer, pod.pod_set, cause)
        one = self._misplaced.get(key)
        if one is None:
            flavors = tuple(_flavors(state.payer, pod.pod_set))
            one = _Misplaced(state.payer, pod.job.ref, pod.pod_set, cause, lacks, Window(moment), flavors)
            self._misplaced[key] = one
            self._found.append(one)
        one.pods[pod.ref.uid] = pod.ref
        self._places[pod.ref.uid] = one

    def _settle(self, one: _Misplaced, uid: str, state: PodState | None, moment: Moment) -> None:
        asked = one.live.pop(uid, {})
        if state is not None and state.live:
            one.live[uid] = state.demand
        else:
            del self._places[uid]
        one.level = add(sub(one.level, asked), one.live.get(uid, {}))
        if one.live:
            one.window.set(moment, one.level)
        else:
            one.window.close(moment)
            del self._misplaced[one.hold.payer, one.pod_set, one.cause]

    def _finding(self, one: _Misplaced) -> Finding:
        window = one.window
        seconds = window.seconds(self.now)
        flavors = " and ".join(one.flavors)
        names = ", ".join(sorted(ref.name for ref in one.pods.values())[:3])
        more = f" and {len(one.pods) - 3} more" if len(one.pods) > 3 else ""
        where = f", bound to {', '.join(sorted(one.nodes)[:3])}" if one.nodes else ""
        booked = {r: value for r, value in window.peak.items() if r != PODS}
        text = (
            f"{one.job}: pod{'s' if len(one.pods) > 1 else ''} {names}{more} of PodSet {one.pod_set} "
            f"{lasting(seconds, still=window.end is None)}: {one.lacks}{where}; {describe_all(booked)} "
            f"booked on flavor {flavors} by {one.hold}"
        )
        return Finding(
            id=finding_id(self.name, f"{one.hold.payer} {one.pod_set} {one.cause}", window.begin.rev),
            rule=self.name,
            klass=_CLASS[one.cause],
            cause=one.cause,
            text=text,
            objects=(one.job, one.hold.ref, *list(one.pods.values())[:_SHOWN]),
            begin=window.begin,
            end=window.end,
            namespace=one.hold.ref.namespace,
            cluster_queue=one.hold.charge.cluster_queue,
            payer=one.hold.payer,
            peak=window.peak,
            resource_seconds=window.resource_seconds(self.now),
            seconds=(seconds, seconds),
        )


def _wrong(pod: Object, wanted: Placement) -> tuple[str, str] | None:
    """(cause, what it lacks) if the pod doesn't carry all of it. What lacks most decides the cause."""
    labels = placement.missing_labels(pod, wanted.labels)
    tolerations = placement.missing_tolerations(pod, wanted.tolerations)
    lacks = [f"selects {_told(labels)}"] if labels else []
    lacks += [f"tolerates no {placement.describe_toleration(one)}" for one in sorted(tolerations, key=str)]
    if not lacks:
        return None
    cause = "selector-differs" if any(labels.values()) else "selector-missing" if labels else "toleration-missing"
    return cause, ", ".join(lacks)


def _told(labels: Mapping[str, str | None]) -> str:
    return ", ".join(f"no {key}" if value is None else f"{key}={value}" for key, value in sorted(labels.items()))


def _flavors(hold: Hold, pod_set: str) -> list[str]:
    return sorted(set(hold.charge.pod_sets[pod_set].flavors.values()))


def _note(known: dict[str, _Recent[V]], change: ObjectChange, read: Callable[[Object], V]) -> None:
    if change.after is None:
        known.pop(change.ref.name, None)
    elif change.ref.name in known:
        known[change.ref.name].update(read(change.after), change.moment.t)
    else:
        known[change.ref.name] = _Recent(read(change.after))


def _owns(scope: Scope, hold: Hold) -> bool:
    return scope.owns(hold.ref.namespace, hold.charge.cluster_queue)
