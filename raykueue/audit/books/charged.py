"""What each open hold takes of the quota, place by place."""

from __future__ import annotations

from typing import TypeAlias

from raykueue.audit.books.changes import HoldChange
from raykueue.audit.books.entities import Job
from raykueue.model.queues import FlavorResource
from raykueue.model.workloads import replaces

Use: TypeAlias = dict[tuple[str, FlavorResource], int]
"""(ClusterQueue, (flavor, resource)) to amount."""


class ChargedUse:
    """By payer. An elastic slice is charged instead of the one it replaces, though both hold for some milliseconds."""

    def __init__(self) -> None:
        self._counted: dict[str, Use] = {}
        self._retired: set[str] = set()

    def apply(self, change: HoldChange, job: Job | None) -> tuple[Use, Use]:
        """What the change frees, and what it takes; all amounts above 0."""
        hold = change.hold
        if hold.payer in self._retired:
            if change.after is None:
                self._retired.discard(hold.payer)
            return {}, {}
        before = self._counted.pop(hold.payer, {})
        after = _use_of(change)
        if after:
            self._counted[hold.payer] = after
        freed = _beyond(before, after)
        replaced = replaces(hold.workload) if change.before is None else ""
        for other in job.holds if job is not None and replaced else ():
            if other.ref.name == replaced:
                self._retired.add(other.payer)
                for place, value in self._counted.pop(other.payer, {}).items():
                    freed[place] = freed.get(place, 0) + value
        return freed, _beyond(after, before)


def _use_of(change: HoldChange) -> Use:
    charge = change.after
    return {} if charge is None else {(charge.cluster_queue, key): value for key, value in charge.totals.items()}


def _beyond(left: Use, right: Use) -> Use:
    return {place: value - right.get(place, 0) for place, value in left.items() if value > right.get(place, 0)}
