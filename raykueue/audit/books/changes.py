"""What one event changed, typed: what rules are told.

`before` is None if something began, `after` is None if it is gone. One event may cause several changes; they are in an
order in which each of them is true. Tuples, since there are several for each event and a frozen dataclass takes three
times as long to make.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from raykueue.audit.books.entities import Hold, Job, Pod, PodState, Queue
from raykueue.model.events import Moment, Object
from raykueue.model.findings import Ref
from raykueue.model.queues import QuotaSpec
from raykueue.model.workloads import Charge


class HoldChange(NamedTuple):
    """A hold began (before is None), is charged something else, or ended (after is None)."""

    hold: Hold
    before: Charge | None
    after: Charge | None
    moment: Moment


class PodChange(NamedTuple):
    """A pod of a Ray job was born, changed (its payer may have, too), or is gone."""

    pod: Pod
    before: PodState | None
    after: PodState | None
    moment: Moment


class JobChange(NamedTuple):
    """A job came to be managed or skipped."""

    job: Job
    moment: Moment


class QueueChange(NamedTuple):
    """A ClusterQueue's spec or what it has booked changed."""

    name: str
    before: Queue | None
    after: Queue | None
    moment: Moment


class CohortChange(NamedTuple):
    """A Cohort object's spec changed."""

    name: str
    before: QuotaSpec | None
    after: QuotaSpec | None
    moment: Moment


class ObjectChange(NamedTuple):
    """Any watched object was written: for rules about an object's own fields."""

    ref: Ref
    before: Object | None
    after: Object | None
    moment: Moment


Change: TypeAlias = HoldChange | PodChange | JobChange | QueueChange | CohortChange | ObjectChange
