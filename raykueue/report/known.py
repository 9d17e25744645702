"""What a run says about the known issues themselves: which no longer show, and which nobody has looked at for long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from raykueue.audit.explanations import KnownIssue, overdue
from raykueue.audit.judge import fixed
from raykueue.model.findings import Verdict
from raykueue.report.record import Record, utc
from raykueue.report.wording import known_ids

_JUDGED = frozenset({Verdict.PASS, Verdict.KNOWN})
"""What a test must have come to, so that it can prove an issue fixed: one that failed may not have got so far."""


def about_known_issues(
    issues: Sequence[KnownIssue],
    records: Iterable[Record],
    planned: Sequence[str],
    pair: Mapping[str, str],
    now: datetime,
) -> list[Record]:
    """A record for every issue that is fixed (it must go) or past its review date (somebody must look)."""
    gone = [
        Record(
            id=f"run::fixed-{issue.id}",
            suite="known issues",
            sentence=f"Known issue {issue.id} still shows",
            verdict=Verdict.FIXED,
            reason=f"{issue.id} ({issue.link}) no longer shows on this pair: remove or narrow it in known-issues.toml",
            started=utc(now),
        )
        for issue in fixed(issues, pair, planned, shown(records))
    ]
    late = [
        Record(
            id=f"run::overdue-{issue.id}",
            suite="known issues",
            sentence=f"Known issue {issue.id} was reviewed in time",
            verdict=Verdict.FAIL,
            reason=f"{issue.id} ({issue.link}) was to be reviewed by {issue.review}: look whether it is still true",
            started=utc(now),
        )
        for issue in overdue(list(issues), now.date())
    ]
    return [*gone, *late]


def shown(records: Iterable[Record]) -> dict[str, frozenset[str]]:
    """By id of each test that was judged: the known issues that it showed."""
    return {record.id: frozenset(known_ids(record)) for record in records if record.verdict in _JUDGED}
