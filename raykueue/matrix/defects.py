"""Recorded defects over all pairs: found on the versions that have them, silent on those that do not. Pure.

That the ledger finds a known-bad version by itself, and says nothing of the one that fixed it, is the proof that its
silence about all others means something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from raykueue.audit.explanations import KnownIssue, matches, of_pair
from raykueue.matrix.outcome import Outcome
from raykueue.matrix.selection import short
from raykueue.model.findings import Verdict
from raykueue.model.gates import Range
from raykueue.report.record import Record
from raykueue.report.summary import code, inline

_JUDGED = frozenset({Verdict.PASS, Verdict.KNOWN, Verdict.FAIL})


@dataclass
class Proof:
    """One recorded defect, and the pairs on which a test that can show it was judged."""

    issue: KnownIssue
    found: list[str] = field(default_factory=list)
    """Pairs that have it, and showed it."""
    not_seen: list[str] = field(default_factory=list)
    """Pairs that have it by its range, and did not show it."""
    silent: list[str] = field(default_factory=list)
    """Pairs that don't have it, and did not show it."""
    surprising: list[str] = field(default_factory=list)
    """Pairs that don't have it by its range, and showed something that looks like it."""


def proofs(every: Iterable[Outcome], issues: Sequence[KnownIssue]) -> list[Proof]:
    """One for each issue, in their order; of one that no judged test could show, all lists are empty."""
    made = [Proof(issue) for issue in issues]
    for one in every:
        for proof in made:
            judged = [record for record in one.records if _can_show(proof.issue, record)]
            if not judged:
                continue
            shown = any(_shows(proof.issue, record) for record in judged)
            has_it = of_pair(proof.issue, one.pair.versions())
            place = (
                (proof.found if shown else proof.not_seen) if has_it else (proof.surprising if shown else proof.silent)
            )
            place.append(short(one.pair))
    return made


def table(made: Sequence[Proof]) -> str:
    """As Markdown; empty if nothing was looked for."""
    rows = [proof for proof in made if proof.found or proof.not_seen or proof.silent or proof.surprising]
    if not rows:
        return ""
    lines = [
        "## Recorded defects",
        "",
        "| defect | versions that have it | found on | has it, not seen | silent on those without it | surprising |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *map(_row, rows), ""])


def _row(proof: Proof) -> str:
    issue = proof.issue
    has_it = "; ".join(_ranges("Kueue", issue.kueue)) or "", "; ".join(_ranges("KubeRay", issue.kuberay)) or ""
    cells = [
        f"{code(issue.id)} {inline(issue.link)}",
        inline(" with ".join(part for part in has_it if part) or "every version"),
        *(_pairs(pairs) for pairs in (proof.found, proof.not_seen, proof.silent, proof.surprising)),
    ]
    return "| " + " | ".join(cells) + " |"


def _ranges(product: str, ranges: Sequence[Range]) -> Iterator[str]:
    if ranges:
        yield f"{product} {' or '.join(map(str, ranges))}"


def _pairs(pairs: Sequence[str]) -> str:
    return f"{len(pairs)}: {', '.join(pairs)}" if pairs else "-"


def _can_show(issue: KnownIssue, record: Record) -> bool:
    return record.verdict in _JUDGED and any(fnmatchcase(record.id, pattern) for pattern in issue.tests)


def _shows(issue: KnownIssue, record: Record) -> bool:
    """By name, or by a finding of its rule and cause that nothing else explains."""
    return any(
        one.explained_by == f"known:{issue.id}" or (one.raised and matches(issue.rule, issue.cause, one.finding))
        for one in record.findings
    )
