"""What a journal is made of: watch events, and the marks around them.

A *journal* is a sequence of records in order of arrival. Only `Event` carries an object. Times are nanoseconds
since the Unix epoch, by the recorder's clock; `rev` is the resourceVersion as an integer, which on one etcd is one
counter over all kinds (k8s.io/apiserver pkg/storage/etcd3/watcher.go:593-600@v0.34.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Object: TypeAlias = Mapping[str, Any]
"""A Kubernetes object as decoded JSON, without managedFields."""

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A point of the journal: compare by revision, subtract to get milliseconds.

    `t` is t*(rev): the smallest arrival time of any event with a revision >= rev, an upper bound of the write time.
    """

    rev: int
    t: int = field(compare=False)
    """Nanoseconds since the epoch."""

    def __sub__(self, earlier: Moment) -> float:
        """Milliseconds from `earlier` to this moment."""
        return (self.t - earlier.t) / 1e6

    def __str__(self) -> str:
        return f"rev {self.rev}"


@dataclass(frozen=True, slots=True)
class Event:
    """One watch event, or one object of a first LIST (then `listed` is true and the type is ADDED)."""

    kind: str
    type: EventType
    rev: int
    arrived: int
    object: Object
    listed: bool = False
    t: int | None = None
    """t* of its revision, by everything that the recorder had seen; None: to be worked out from this journal alone."""
    place: int = 0
    """Folded as if it had this revision, because it arrived after its own had been judged; 0: it has its own place."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A consistent LIST of one kind was taken at revision `rev`: its stream starts there."""

    kind: str
    rev: int
    arrived: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Events of a kind may have been missed in (after, until]: nothing can be judged over that time."""

    kind: str
    after: int
    until: int
    arrived: int
    reason: str


@dataclass(frozen=True, slots=True)
class Marker:
    """Something the suite did or saw that is no write: `kueue-down`, `kueue-up`, `scope-open`, `scope-close`, …"""

    what: str
    arrived: int
    about: Mapping[str, Any] = field(default_factory=dict)
    rev: int = 0
    """Highest revision that had arrived by then; 0: to be worked out from this journal alone."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """Every kind's stream is complete up to `rev`, proven by the echo of one sentinel write per kind."""

    rev: int
    arrived: int
    now: int | None = None
    """Up to this time everything is known: what is not yet proven may have been written from then on. None: to be
    worked out from this journal alone."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first record: what was recorded, with which settings."""

    arrived: int
    format: int = 1
    pair: Mapping[str, str] = field(default_factory=dict)
    """Versions: {"kubernetes": "1.34.4", "kueue": "0.19.2", "kuberay": "1.6.2"}."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Thresholds and configuration that judging depends on (see raykueue.audit.thresholds)."""


Record: TypeAlias = Header | Event | Listed | Gap | Marker | Barrier
