"""Judges the findings of one test: each is explained once, by the first of expects, known issues, allowances that fits.

Pure: what a test expects never leaves its process. A finding that is part of another one is kept, not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from raykueue.audit.answers import Circumstances
from raykueue.audit.explanations import Allowance, Expect, KnownIssue, matches, of_pair
from raykueue.audit.thresholds import Thresholds
from raykueue.model.findings import Finding, Verdict
from raykueue.model.quantities import add, describe_all, excess, largest


@dataclass(frozen=True, slots=True)
class Explained:
    """One finding, and what explains it."""

    finding: Finding
    by: Literal["expects", "known", "allows", "nothing"]
    what: str = ""
    """The expectation, or the id of the known issue or allowance."""
    near: tuple[str, ...] = ()
    """What would have explained it, and why it doesn't."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the findings of one test come to."""

    explained: tuple[Explained, ...]
    missing: tuple[str, ...]
    """Expected, but did not appear: told for people."""
    covered: tuple[Finding, ...] = ()
    """Part of another finding, so not judged."""

    @property
    def unexplained(self) -> tuple[Explained, ...]:
        return tuple(e for e in self.explained if e.by == "nothing")

    @property
    def shown(self) -> frozenset[str]:
        """Ids of the known issues that showed."""
        return frozenset(e.what for e in self.explained if e.by == "known")

    @property
    def verdict(self) -> Verdict:
        """fail, known or pass. What spoils the record, and what is fixed, is decided elsewhere."""
        if self.unexplained or self.missing:
            return Verdict.FAIL
        return Verdict.KNOWN if self.shown else Verdict.PASS

    def text(self) -> str:
        """What made it fail, for people; empty if nothing did."""
        lines: list[str] = []
        for one in self.unexplained:
            lines.append(f"{one.finding.rule} ({one.finding.klass}, {one.finding.cause}): {one.finding.text}")
            lines += [f"    not explained by {reason}" for reason in one.near]
        lines += [f"expected, but did not appear: {text}" for text in self.missing]
        return "\n".join(lines)


def judge(
    findings: Iterable[Finding],
    expects: Sequence[Expect],
    known: Iterable[KnownIssue],
    allows: Iterable[Allowance],
    *,
    test: str,
    pair: Mapping[str, str],
    thresholds: Thresholds,
    circumstances: Mapping[str, Circumstances] | None = None,
    names: Mapping[str, float] | None = None,
) -> Judgement:
    """Explains each finding once.

    Args:
        test: id of the test, which known issues are looked up by.
        pair: versions, which known issues and allowances are looked up by.
        thresholds: those that the ledger judged by; formulas name them.
        circumstances: by finding id: grace, TTL and charge of its payer (`Ledger.circumstances`).
        names: values that formulas take first, as {"g": 0} where pods end at once.

    Raises:
        ValueError: a formula needs a name that is in neither.
    """
    found = list(findings)
    uncharged = _uncharged(found)
    issues = [issue for issue in known if issue.concerns(test, pair)]
    rows = [row for row in allows if of_pair(row, pair)]
    seen = [0] * len(expects)
    near_misses: list[list[str]] = [[] for _ in expects]
    explained: list[Explained] = []
    covered: list[Finding] = []
    for finding in found:
        if finding.part_of:
            covered.append(finding)
            continue
        place = (circumstances or {}).get(finding.id, Circumstances())
        values = {**thresholds.names(), "g": place.grace, "ttl": place.ttl, **(names or {})}
        near: list[str] = []
        verdict = _expected(finding, expects, seen, near_misses, values, near)
        verdict = verdict or _known(finding, issues, values, near)
        verdict = verdict or _allowed(finding, rows, values, place, uncharged.get(finding.payer, {}), near)
        explained.append(verdict or Explained(finding, "nothing", near=tuple(near)))
    missing = [
        str(expect) + (f"; but there was one of which {'; '.join(reasons)}" if reasons else "")
        for expect, count, reasons in zip(expects, seen, near_misses, strict=True)
        if not count
    ]
    return Judgement(tuple(explained), tuple(missing), tuple(covered))


def fixed(
    issues: Iterable[KnownIssue],
    pair: Mapping[str, str],
    planned: Iterable[str],
    shown: Mapping[str, frozenset[str]],
) -> list[KnownIssue]:
    """Known issues that no longer show, so their record must go.

    Only those that show always, on this pair, and only if every planned test that must show it was judged.

    Args:
        planned: ids of all tests of the run.
        shown: by id of each test that was judged: the known issues that it showed.
    """
    ids = list(planned)
    gone: list[KnownIssue] = []
    for issue in issues:
        tests = [test for test in ids if issue.concerns(test, pair)]
        judged = bool(tests) and all(test in shown for test in tests)
        if issue.occurs == "always" and judged and not any(issue.id in shown[test] for test in tests):
            gone.append(issue)
    return gone


def _uncharged(findings: Iterable[Finding]) -> dict[str, dict[str, int]]:
    """By payer: what its pods ask for beyond its charge at once, at most, told by findings of their own while it pays.

    Whoever explains those has explained the same amounts of the pods that outlive it.
    """
    told: dict[str, list[Finding]] = defaultdict(list)
    for one in findings:
        if (one.rule, one.cause) == ("pods-covered", "under-count"):
            told[one.payer].append(one)
    return {payer: largest(*(_at(one.begin.rev, windows) for one in windows)) for payer, windows in told.items()}


def _at(rev: int, windows: Iterable[Finding]) -> dict[str, int]:
    """Of all that are open at that revision."""
    return add(*(one.peak for one in windows if one.begin.rev <= rev and (one.end is None or rev < one.end.rev)))


def _expected(
    finding: Finding,
    expects: Sequence[Expect],
    seen: list[int],
    near_misses: list[list[str]],
    values: Mapping[str, float],
    near: list[str],
) -> Explained | None:
    for index, expect in enumerate(expects):
        if not matches(expect.rule, expect.cause, finding):
            continue
        reason = expect.bounds.why_not(finding, values)
        if not reason and expect.times is not None and seen[index] >= expect.times:
            reason = f"it may appear {expect.times} times"
        if reason:
            near_misses[index].append(reason)
            near.append(f"what the test expects, {expect}: {reason}")
            continue
        seen[index] += 1
        return Explained(finding, "expects", str(expect))
    return None


def _known(
    finding: Finding, issues: Iterable[KnownIssue], values: Mapping[str, float], near: list[str]
) -> Explained | None:
    for issue in issues:
        if not matches(issue.rule, issue.cause, finding):
            continue
        reason = issue.bounds.why_not(finding, values)
        if not reason:
            return Explained(finding, "known", issue.id)
        near.append(f"known issue {issue.id} ({issue.link}): {reason}")
    return None


def _allowed(
    finding: Finding,
    rows: Iterable[Allowance],
    values: Mapping[str, float],
    place: Circumstances,
    uncharged: Mapping[str, int],
    near: list[str],
) -> Explained | None:
    for row in rows:
        if not matches(row.rule, row.cause, finding):
            continue
        reason = row.bounds.why_not(finding, values)
        if not reason and row.within_charge and place.charge is not None:
            beyond = excess(finding.peak, add(place.charge, uncharged))
            reason = f"it is {describe_all(beyond)} more than its payer was charged" if beyond else ""
        if not reason:
            return Explained(finding, "allows", row.id)
        near.append(f"allowance {row.id}: {reason}")
    return None
