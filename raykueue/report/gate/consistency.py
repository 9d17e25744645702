"""Records that contradict themselves, or the tables by which findings are explained: no gate opens on them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from raykueue.audit.explanations import Allowance, KnownIssue, matches, of_pair
from raykueue.model.findings import Finding, Verdict
from raykueue.report.record import JudgedFinding, Record
from raykueue.report.wording import known_ids, one_line

_BODY_RAN = frozenset({Verdict.PASS, Verdict.KNOWN, Verdict.FAIL})
"""What nothing but the body of a test comes to: what goes wrong before or after it is infra."""
_GOOD = frozenset({Verdict.PASS, Verdict.KNOWN})


def contradictions(record: Record) -> Iterator[str]:
    """What its parts say against each other, a sentence each. None of it is what a run writes."""
    verdict, known = record.verdict, known_ids(record)
    if verdict is Verdict.KNOWN and not known:
        yield "its verdict is known, but no known issue explains any finding of it"
    if verdict is Verdict.PASS and known:
        yield f"its verdict is pass, but known issue {known[0]} explains a finding of it"
    if verdict in _GOOD and record.failure:
        yield f"its verdict is {verdict}, but it has the text of a failure: {one_line(record.failure, 200)}"
    if verdict in _BODY_RAN and not record.of_run and "call" not in record.phases:
        yield f"its verdict is {verdict}, but its body never ran: it has no call phase"
    for one in record.findings:
        if one.explained_by and one.finding.part_of:
            yield f"{_name(one.finding)} is part of another finding, and explained by {one.explained_by}, too"


def unfounded(
    record: Record, pair: Mapping[str, str], issues: Sequence[KnownIssue], allowances: Sequence[Allowance]
) -> Iterator[str]:
    """What explains findings by its name only, a sentence each.

    Bounds are not held again: a record does not have what their formulas are about.
    """
    concerned = {issue.id: issue for issue in issues if issue.concerns(record.id, pair)}
    allowed = {row.id: row for row in allowances if of_pair(row, pair)}
    by_id = {one.finding.id: one.finding for one in record.findings}
    found: list[str] = []
    for one in record.findings:
        kind, _, name = one.explained_by.partition(":")
        if kind == "known":
            missing = "which known-issues.toml does not have for this test and pair (any more)"
            found.append(_doubt(one, f"known issue {name}", concerned.get(name), missing))
        elif kind == "allowance":
            missing = "which allowances.toml does not have for this pair (any more)"
            found.append(_doubt(one, f"allowance {name}", allowed.get(name), missing))
        found.append(_accounted(one.finding, by_id))
    yield from dict.fromkeys(filter(None, found))


def _doubt(one: JudgedFinding, what: str, row: KnownIssue | Allowance | None, missing: str) -> str:
    if row is None:
        return f"{what} explains it, {missing}"
    if matches(row.rule, row.cause, one.finding):
        return ""
    return f"{what} explains {_name(one.finding)}, but is about {row.rule} / {row.cause}"


def _accounted(finding: Finding, by_id: Mapping[str, Finding]) -> str:
    """A part is accounted for by a finding that is itself judged, through other parts if need be."""
    seen: set[str] = set()
    whole = finding
    while whole.part_of:
        if whole.id in seen:
            return f"{_name(finding)} is part of {finding.part_of}, and that of itself: so nothing accounts for it"
        seen.add(whole.id)
        if whole.part_of not in by_id:
            return f"{_name(finding)} is part of {whole.part_of}, which its record does not have"
        whole = by_id[whole.part_of]
    return ""


def _name(finding: Finding) -> str:
    return f"finding {finding.id} ({finding.rule} / {finding.cause})"
