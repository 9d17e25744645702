"""What a rule is: it is told typed changes in order of revision, and answers with findings and obligations."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from raykueue.audit.answers import Obligation
from raykueue.audit.books.changes import Change, ObjectChange
from raykueue.audit.books.fold import Books
from raykueue.audit.scope import Scope
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Marker, Moment
from raykueue.model.findings import Class, Finding


class Rule(ABC):
    """One rule. A subclass holds its own state; it reads the books and never writes them.

    The cost of `see` must not depend on the number of objects.
    """

    name: ClassVar[str]
    sentence: ClassVar[str]
    """What must stay true."""
    klass: ClassVar[Class]
    """Of most of its findings; a cause may have another."""
    why: ClassVar[str]
    """Why it matters to a user."""
    source: ClassVar[str]
    """Where it is promised, or where the code says so."""
    thresholds: ClassVar[tuple[str, ...]] = ()
    """Fields of Thresholds it uses; their reasons stand there."""
    sees: ClassVar[frozenset[type | str] | None] = None
    """What it is told of: types of change, and kinds of object, which stand for their ObjectChange. None: everything.
    Most changes concern few rules, and to tell the others is a large part of what the ledger costs."""

    def __init__(self, books: Books, thresholds: Thresholds, pair: Mapping[str, str]) -> None:
        self.books = books
        self.limits = thresholds
        self.pair = pair
        self.now = 0
        """Nanoseconds since the epoch: everything up to here is known."""

    @classmethod
    def wants(cls, what: type | str) -> bool:
        """Whether it is told of changes of this type, or of this kind of object."""
        return cls.sees is None or what in cls.sees or (isinstance(what, str) and ObjectChange in cls.sees)

    @abstractmethod
    def see(self, change: Change) -> None:
        """One thing changed; the books already say so."""

    def mark(self, marker: Marker, moment: Moment) -> None:  # noqa: B027 - most rules have no use for markers
        """The suite did or saw something that is no write."""

    def advance(self, now: int) -> None:
        """Everything up to `now` is known."""
        self.now = now

    @abstractmethod
    def findings(self) -> Iterable[Finding]:
        """All so far, open ones included, in no order."""

    def review(self, found: list[Finding]) -> list[Finding]:
        """Looks at the findings of all rules together: may add its own, and say what belongs to what. Changes nothing.

        Every rule is asked in turn, with what those before it returned. Blame once: what another finding already
        accounts for is `part_of` it.
        """
        return found

    def obligations(self, scope: Scope) -> Iterable[Obligation]:  # noqa: ARG002 - most rules wait for nothing
        """What the rule still waits for in a scope."""
        return ()

    @abstractmethod
    def forget(self, scope: Scope) -> None:
        """Findings of the scope were handed over; drop them and what they were made of."""


def finding_id(rule: str, subject: str, rev: int) -> str:
    """The same in judging and in replay: 12 hex digits of rule, payer (or job, or queue) and first revision."""
    return hashlib.sha256(f"{rule}\0{subject}\0{rev}".encode()).hexdigest()[:12]


def lasting(seconds: float, *, still: bool) -> str:
    """A duration for people, in milliseconds."""
    return f"for {round(seconds * 1000)} ms" + (", and still so" if still else "")
