"""Recorded defects over all pairs: found on the versions that have them, silent on those that do not. Pure.

That the ledger finds a known-bad version by itself, and says nothing of the one that fixed it, is the proof that its
silence about all others means something.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from raykueue.audit.explanations import KnownIssue, matches, of_pair
from raykueue.matrix.outcome import Outcome
from raykueue.matrix.selection import short
from raykueue.model.findings import Verdict
from raykueue.model.gates import Range, ends
from raykueue.report.record import Record
from raykueue.report.summary import code, inline

_HEADS = (
    "defect",
    "versions that have it",
    "first fixed",
    "found on",
    "has it, not seen",
    "silent on those without it",
    "surprising",
)
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
            has_it = of_pair(proof.issue, one.pair.versions())
            judged = [record for record in one.records if _can_show(proof.issue, record, has_it=has_it)]
            if not judged:
                continue
            shown = any(_shows(proof.issue, record) for record in judged)
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
        f"| {' | '.join(_HEADS)} |",
        "|---" * len(_HEADS) + "|",
    ]
    return "\n".join([*lines, *map(_row, rows), ""])


def _row(proof: Proof) -> str:
    issue = proof.issue
    has_it = [_ranges(product, ranges) for product, ranges in _products(issue)]
    cells = [
        f"{code(issue.id)} {inline(issue.link)}",
        inline(" with ".join(has_it) or "every version"),
        inline(_first_fixed(issue)),
        *(_pairs(pairs) for pairs in (proof.found, proof.not_seen, proof.silent, proof.surprising)),
    ]
    return "| " + " | ".join(cells) + " |"


def _products(issue: KnownIssue) -> list[tuple[str, tuple[Range, ...]]]:
    """Those whose version matters to it."""
    every = [("Kueue", issue.kueue), ("KubeRay", issue.kuberay)]
    return [(product, ranges) for product, ranges in every if ranges]


def _ranges(product: str, ranges: Sequence[Range]) -> str:
    return f"{product} {' or '.join(map(_range, ranges))}"


def _range(one: Range) -> str:
    # 0.16.0-0 is what comes before all pre-releases of 0.16.0, of which none is served.
    return str(Range(one.since.removesuffix("-0"), one.before.removesuffix("-0")))


def _first_fixed(issue: KnownIssue) -> str:
    """The first release of each line that does not have it; a product none of whose releases is fixed is left out."""
    return "; ".join(filter(None, (_fixes(*one) for one in _products(issue)))) or "never"


def _fixes(product: str, ranges: tuple[Range, ...]) -> str:
    fixes = ends(ranges)
    still = [one.since.removesuffix("-0") for one in ranges if not one.before]
    return f"{product} {', '.join([*fixes, *(f'never from {one} on' for one in still)])}" if fixes else ""


def _pairs(pairs: Sequence[str]) -> str:
    return f"{len(pairs)}: {', '.join(pairs)}" if pairs else "-"


def _can_show(issue: KnownIssue, record: Record, *, has_it: bool) -> bool:
    where = issue.tests if has_it else (*issue.tests, *issue.absent_in)
    return record.verdict in _JUDGED and any(fnmatchcase(record.id, pattern) for pattern in where)


def _shows(issue: KnownIssue, record: Record) -> bool:
    """By name, or by a finding of its rule and cause that nothing else explains."""
    return any(
        one.explained_by == f"known:{issue.id}" or (one.raised and matches(issue.rule, issue.cause, one.finding))
        for one in record.findings
    )
