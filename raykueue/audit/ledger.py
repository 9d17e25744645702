"""The ledger: an incremental fold of a journal into findings, by revision and watermark.

Records come in order of arrival and are buffered; a barrier proves them complete up to its revision, and then they are
folded in order of revision. Pure: the barrier's time is "now". Cost per event does not depend on how many objects
there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from raykueue.audit.answers import Circumstances, Obligation, Problem
from raykueue.audit.books.changes import Change, ObjectChange
from raykueue.audit.books.fold import Books
from raykueue.audit.handovers import HandOver
from raykueue.audit.order import Order
from raykueue.audit.rules import RULES
from raykueue.audit.rules.no_overlap import NoOverlap
from raykueue.audit.rules.rule import Rule
from raykueue.audit.scope import Scope, union
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Barrier, Event, Gap, Marker, Record
from raykueue.model.findings import Finding
from raykueue.model.views import namespace


class Ledger:
    """All rules over all objects of one run; asked scope by scope.

    Args:
        settings: what the rules tolerate.
        pair: versions, as in a journal's header: {"kubernetes": …, "kueue": …, "kuberay": …}.
    """

    def __init__(self, settings: Thresholds, pair: Mapping[str, str]) -> None:
        self._order = Order()
        self._books = Books()
        self._rules = [rule(self._books, settings, pair) for rule in RULES]
        self._listeners = _Listeners(self._rules)
        self._since: dict[str, int] = {}

    def add(self, record: Record) -> None:
        """Takes a record, in order of arrival; nothing is judged before a `fold`."""
        if isinstance(record, Event):
            self._books.identities.learn(record)
            self._since.setdefault(namespace(record.object), record.rev)
            if not self._order.add(record):
                self._books.problems.append(_late(record, self._order.folded))
        elif isinstance(record, Marker):
            self._order.mark(record)
        elif isinstance(record, Gap):
            self._books.problems.append(_gap(record))

    def fold(self, barrier: Barrier) -> None:
        """Judges everything up to the barrier's revision, and lets time pass up to its arrival."""
        batch = self._order.take(barrier)
        for moment, item in batch.items:
            if isinstance(item, Marker):
                for rule in self._rules:
                    rule.mark(item, moment)
                continue
            for change in self._books.apply(item, moment):
                for see in self._listeners[change.ref.kind if type(change) is ObjectChange else type(change)]:
                    see(change)
        for rule in self._rules:
            rule.advance(batch.now)

    def findings(self, scope: Scope) -> list[Finding]:
        """Findings of the scope's payers, jobs and queues, open ones included, oldest first."""
        return self._reviewed(scope.has)

    def unscoped(self, open_scopes: Iterable[Scope]) -> list[Finding]:
        """Findings that belong to none of these scopes; those of a forgotten scope were handed over already."""
        known = union(open_scopes)
        return self._reviewed(lambda finding: not known.has(finding))

    def handovers(self, scope: Scope) -> list[HandOver]:
        """Quota of the scope that was given to somebody while pods that had it before still lived, oldest first."""
        return [one for rule in self._rules if isinstance(rule, NoOverlap) for one in rule.handovers(scope)]

    def problems(self, scope: Scope) -> list[Problem]:
        """What spoils the record for this scope: gaps and late events while it existed, pods of nobody in it."""
        since = min((self._since[n] for n in scope.namespaces if n in self._since), default=0)
        return [
            p for p in self._books.problems if (p.namespace in scope.namespaces if p.namespace else p.until >= since)
        ]

    def obligations(self, scope: Scope) -> list[Obligation]:
        """What a rule still waits for in this scope; empty: nothing can fire any more."""
        return [obligation for rule in self._rules for obligation in rule.obligations(scope)]

    def circumstances(self, findings: Iterable[Finding]) -> dict[str, Circumstances]:
        """By finding id: what the bounds of an explanation depend on. Ask before the scope is forgotten."""
        found: dict[str, Circumstances] = {}
        for finding in findings:
            hold = self._books.hold(finding.payer)
            job = self._books.job(hold.job if hold else finding.objects[0].uid)
            if job is not None:
                found[finding.id] = Circumstances(job.grace, job.ttl, hold.most if hold else None)
        return found

    def forget(self, scope: Scope) -> None:
        """The scope was judged and closed: its findings are dropped, and its objects once they are gone."""
        for rule in self._rules:
            rule.forget(scope)
        self._books.forget(scope.namespaces)
        for name in scope.namespaces:
            self._since.pop(name, None)

    def _reviewed(self, wanted: Callable[[Finding], bool]) -> list[Finding]:
        """Those wanted, after every rule has seen them together."""
        found = [finding for rule in self._rules for finding in rule.findings() if wanted(finding)]
        for rule in self._rules:
            found = rule.review(found)
        return sorted(filter(wanted, found), key=lambda f: (f.begin.rev, f.rule, f.id))


class _Listeners(dict[type | str, list[Callable[[Change], None]]]):
    """By type of change, or kind of an ObjectChange: the rules that are told of it, in their order."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        super().__init__()
        self._rules = tuple(rules)

    def __missing__(self, what: type | str) -> list[Callable[[Change], None]]:
        self[what] = [rule.see for rule in self._rules if rule.wants(what)]
        return self[what]


def _late(event: Event, folded: int) -> Problem:
    obj = event.object["metadata"]
    text = (
        f"{event.kind} {obj.get('namespace', '')}/{obj.get('name', '')} at revision {event.rev} arrived after "
        f"everything up to {folded} had been judged: a barrier was wrong, so nothing is proven; run again"
    )
    return Problem("late", text, until=folded)


def _gap(gap: Gap) -> Problem:
    text = (
        f"events of {gap.kind} may have been missed in revisions {gap.after} to {gap.until} ({gap.reason}): nothing "
        "can be judged over that time; run again"
    )
    return Problem("gap", text, until=gap.until)
