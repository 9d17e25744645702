"""The rules: each one a sentence about the books that must stay true, judged change by change."""

from __future__ import annotations

from raykueue.audit.rules.books_match import BooksMatch
from raykueue.audit.rules.finished_stays_finished import FinishedStaysFinished
from raykueue.audit.rules.no_overlap import NoOverlap
from raykueue.audit.rules.no_survivors import NoSurvivors
from raykueue.audit.rules.nothing_left import NothingLeft
from raykueue.audit.rules.one_workload import OneWorkload
from raykueue.audit.rules.over_use import OverUse
from raykueue.audit.rules.placed_as_assigned import PlacedAsAssigned
from raykueue.audit.rules.pods_covered import PodsCovered
from raykueue.audit.rules.quota_respected import QuotaRespected
from raykueue.audit.rules.released_in_time import ReleasedInTime
from raykueue.audit.rules.rule import Rule
from raykueue.audit.rules.suspended_means_empty import SuspendedMeansEmpty

RULES: tuple[type[Rule], ...] = (
    BooksMatch,
    PodsCovered,
    NoSurvivors,
    NoOverlap,
    QuotaRespected,
    OverUse,
    OneWorkload,
    SuspendedMeansEmpty,
    FinishedStaysFinished,
    PlacedAsAssigned,
    NothingLeft,
    ReleasedInTime,
)
"""In the order in which they are told of a change."""

__all__ = ["RULES", "Rule"]
