"""Replays every preemption of a journal against an independent model, and says where priorities were inverted.

For each scheduling decision: was each victim legal, was a smaller or lower set enough. Between them: was a priority
inverted for longer than a scheduling cycle. What the model knows
nothing of (borrowWithinCohort, fair sharing, hierarchies of cohorts, topologies) makes a decision `undecided`: it is
said, never passed over.

A scheduler decides by a snapshot that trails the journal, and leads it by what it has assumed. So a decision is right
if it was right by any state of the last second, with or without what began in the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from raykueue.audit.cohorts import CohortCycle
from raykueue.audit.contenders import Eviction, History
from raykueue.audit.inversions import inversions
from raykueue.audit.thresholds import ns
from raykueue.audit.victims import Contender, faults, remarks
from raykueue.model.events import Moment, Record
from raykueue.model.findings import Ref

Verdict: TypeAlias = Literal["right", "wrong", "undecided"]

CYCLE_S = 2.0
"""Longer than any scheduling cycle, with what its informers lag: a priority inverted for less is in order."""
SNAPSHOT_S = 1.0
"""So far a scheduler's snapshot may trail or lead the journal."""
_UNMODELLED = {
    "InCohortFairSharing": "the victims were chosen by fair sharing",
    "InCohortReclaimWhileBorrowing": "it reclaimed while borrowing",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice of victims, or one time in which none was made although it should have been."""

    kind: Literal["preemption", "inversion", "overtaking"]
    verdict: Verdict
    preemptor: Ref | None
    """None: the journal doesn't have it."""
    victims: tuple[Ref, ...]
    """Who was preempted; of an inversion, who should have been; who overtook it."""
    cluster_queue: str
    begin: Moment
    end: Moment
    """Of the last eviction; of an inversion, when it was over, or the journal."""
    reasons: tuple[str, ...] = ()
    """What was wrong, or can't be decided, in words."""
    remarks: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As a person would tell it."""
        who = str(self.preemptor) if self.preemptor else "somebody who is not in the journal"
        whom = ", ".join(str(one) for one in self.victims)
        if self.kind != "preemption":
            waited = f"{who} waited {round(self.end - self.begin)} ms in ClusterQueue {self.cluster_queue}"
            ends = "while lower ones held what it could take" if self.kind == "inversion" else "where there was room"
            return f"{waited} {ends}: {whom}" + ("" if self.kind == "inversion" else " was given quota before it")
        verdict = {
            "right": "legal, and no smaller or lower set was enough",
            "wrong": "wrong",
            "undecided": "not decided",
        }[self.verdict]
        told = "; ".join([verdict, *self.reasons, *self.remarks])
        return f"{who} preempted {whom} in ClusterQueue {self.cluster_queue or '(unknown)'}: {told}"


def decisions(records: Iterable[Record], *, cycle: float = CYCLE_S) -> list[Decision]:
    """Every decision to preempt, and every priority inverted for longer than `cycle` seconds, oldest first."""
    history = History(records)
    found = [_decide(history, group) for group in _groups(history.evictions)]
    found += [
        Decision(one.kind, "wrong", one.who, one.lower, one.cluster_queue, one.begin, one.end)
        for one in inversions(history, ns(cycle))
    ]
    return sorted(found, key=lambda one: (one.begin.rev, one.kind))


def _groups(evictions: Iterable[Eviction]) -> list[list[Eviction]]:
    """Evictions for one preemptor that follow each other at once are one decision."""
    groups: dict[str, list[list[Eviction]]] = {}
    for one in evictions:
        groups.setdefault(one.preemptor or f"for {one.victim}", [])
        mine = groups[one.preemptor or f"for {one.victim}"]
        if mine and one.moment.t - mine[-1][-1].moment.t <= ns(SNAPSHOT_S):
            mine[-1].append(one)
        else:
            mine.append([one])
    return [group for mine in groups.values() for group in mine]


def _decide(history: History, group: list[Eviction]) -> Decision:
    first, last = group[0].moment, group[-1].moment
    refs = tuple(history.lives[one.victim].ref for one in group)
    life = history.lives.get(group[0].preemptor)
    wants = history.preemptor(group[0].preemptor, first.rev - 1)
    doubts = {_UNMODELLED[one.reason] for one in group if one.reason in _UNMODELLED}
    if wants is None:
        doubts.add("what it asked is not in the journal" if life else "the journal does not have who it was for")
        return Decision("preemption", "undecided", life.ref if life else None, refs, "", first, last, tuple(doubts))
    verdict: Verdict = "right"
    reasons: list[str] = []
    told: list[str] = []
    try:
        doubts |= {history.room(wants.cluster_queue, first.rev - 1).unmodelled(wants.cluster_queue)}
        seen = [history.holder(one.victim, first.rev - 1) for one in group]
        doubts |= {history.unmodelled(one, first.rev) for one in (wants, *seen) if one is not None}
        doubts -= {""}
        if doubts:
            verdict, reasons = "undecided", sorted(doubts)
        else:
            verdict, reasons, told = _judge(history, group, wants)
    except CohortCycle as error:
        verdict, reasons = "undecided", [str(error)]
    return Decision(
        "preemption", verdict, wants.ref, refs, wants.cluster_queue, first, last, tuple(reasons), tuple(told)
    )


def _judge(history: History, group: list[Eviction], wants: Contender) -> tuple[Verdict, list[str], list[str]]:
    """Right if it was right by any state that the scheduler may have decided by; else what was wrong by the last."""
    first = group[0].moment
    wrong: list[str] = []
    for rev, until in _states(history, first):
        room = history.room(wants.cluster_queue, rev, until=until)
        seen = [room.holders[one.victim] for one in group if one.victim in room.holders]
        if len(seen) < len(group):
            missing = [str(history.lives[one.victim].ref) for one in group if one.victim not in room.holders]
            reasons = [f"{', '.join(missing)} held no quota in its cohort"]
        else:
            reasons = list(faults(room, wants, seen))
        if not reasons:
            return "right", [], list(remarks(room, wants, seen))
        wrong = wrong or reasons
    return "wrong", wrong, []


def _states(history: History, first: Moment) -> Iterator[tuple[int, int | None]]:
    """Revisions by which a scheduler may have decided: the last one first, each also with what it had assumed."""
    span = ns(SNAPSHOT_S)
    revs = {first.rev - 1}
    ahead = None
    for moment, _ in history.turns:
        if first.t - span <= moment.t and moment.rev < first.rev:
            revs |= {moment.rev - 1, moment.rev}
        elif moment.rev > first.rev and moment.t <= first.t + span:
            ahead = moment.rev
    for rev in sorted(revs, reverse=True):
        yield rev, None
        if ahead is not None:
            yield rev, ahead
