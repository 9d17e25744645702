"""Which reports belong to a gate, and together: of its suite, of its pins, and of one run. All others are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from raykueue.errors import EXIT_EMPTY, EXIT_INFRA, EXIT_USAGE, UsageError
from raykueue.model.applicability import BORROWED, tier_of
from raykueue.model.findings import Verdict
from raykueue.model.versions import Versions
from raykueue.report.gate.evidence import Evidence, Refusal, ran
from raykueue.report.provenance import is_dirty
from raykueue.report.run_info import LoadedReport, moment
from raykueue.report.wording import commit_word

_JUDGED = frozenset({Verdict.PASS, Verdict.FAIL, Verdict.KNOWN, Verdict.FIXED})
_CLOCKS = timedelta(minutes=5)
"""How far the clocks of two machines may be apart."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The suite that asks: only what it could have run itself does it believe."""

    versions: Versions
    version: str
    commit: str
    """As `raykueue.report.provenance.commit_of`; empty if it is installed without a repository."""
    other_commits: bool = False
    """Whether it also takes reports of other commits, of a changed suite, or of one that nobody knows."""


def of_this_suite(evidence: Evidence, suite: Suite, now: datetime) -> Evidence:
    """Without the reports that nothing can be concluded from here: of another suite, lock or release, or empty."""
    kept: list[LoadedReport] = []
    refusals, waived = list(evidence.refusals), list(evidence.waived)
    for report in evidence.reports:
        refusal, other = _foreign(report, suite) or _unfit(report, now), _of_other_commit(report, suite.commit)
        if refusal is None and other is not None:
            if suite.other_commits:
                waived.append(other)
            else:
                refusal = replace(other, why=f"{other.why} (--allow-other-commits takes it)")
        if refusal is None:
            kept.append(report)
        else:
            refusals.append(refusal)
    return Evidence(tuple(kept), tuple(refusals), tuple(waived))


def that_fit(evidence: Evidence) -> Evidence:
    """The same, with a refusal for each two that contradict each other: other commits or profiles, a test run twice."""
    refusals = list(evidence.refusals)
    for cell, reports in evidence.cells().items():
        seen: dict[str, Path] = {}
        for report in reports:
            twice = [record.id for record in ran(report.records) if record.id in seen]
            if twice:
                why = f"{twice[0]} has a record in {seen[twice[0]].name}, too, on {cell}: which one counts?"
                refusals.append(Refusal(EXIT_USAGE, str(report.folder), why))
            seen |= {record.id: report.folder for record in ran(report.records)}
        refusals += _mixed(reports, "profile", [report.run.facts.profile for report in reports])
        refusals += _mixed(reports, "tier", [report.run.facts.tier for report in reports])
    reports = list(evidence.reports)
    refusals += _mixed(reports, "commit of the suite", [report.run.facts.commit for report in reports])
    return replace(evidence, refusals=tuple(refusals))


def _mixed(reports: Sequence[LoadedReport], what: str, values: Sequence[str]) -> Iterator[Refusal]:
    for report, value in zip(reports, values, strict=True):
        if value != values[0]:
            why = f"its {what} is {value or 'unknown'}, that of {reports[0].folder.name} is {values[0] or 'unknown'}"
            yield Refusal(EXIT_USAGE, str(report.folder), why)


def _foreign(report: LoadedReport, suite: Suite) -> Refusal | None:
    run, where = report.run, str(report.folder)
    if run.facts.suite_version != suite.version:
        theirs = run.facts.suite_version or "of unknown version"
        return Refusal(EXIT_USAGE, where, f"suite {theirs} wrote it, this is the gate of suite {suite.version}")
    try:
        pair = suite.versions.made_of(run.pair)
    except UsageError as error:
        return Refusal(EXIT_USAGE, where, str(error))
    return _other_pins(report, suite.versions.digest(pair, run.backend))


def _of_other_commit(report: LoadedReport, commit: str) -> Refusal | None:
    theirs = report.run.facts.commit
    if not theirs:
        why = "it does not say of which commit the suite was that wrote it"
    elif is_dirty(theirs):
        why = f"the suite that wrote it was changed ({commit_word(theirs)}), so nobody else can run that again"
    elif commit and theirs != commit:
        why = f"the suite at {commit_word(theirs)} wrote it, this is the gate of {commit_word(commit)}"
    else:
        return None
    return Refusal(EXIT_USAGE, str(report.folder), why)


def _other_pins(report: LoadedReport, lock: str) -> Refusal | None:
    if report.run.backend == BORROWED:
        why = "it ran on a cluster that was there already, whose pins nobody knows: no evidence for a release"
        return Refusal(EXIT_USAGE, str(report.folder), why)
    if drift := report.run.facts.drift:
        return Refusal(EXIT_USAGE, str(report.folder), f"what ran was not what was pinned (--allow-drift): {drift[0]}")
    seen = report.run.facts.lock_digest
    if not seen and not any(record.verdict in _JUDGED for record in ran(report.records)):
        return None  # the cluster did not start; what its records say of that is what matters
    if seen == lock:
        return None
    why = f"what it ran was pinned by another versions.toml (digest {seen[:12] or 'unknown'}, here {lock[:12]})"
    return Refusal(EXIT_USAGE, str(report.folder), why)


def _unfit(report: LoadedReport, now: datetime) -> Refusal | None:
    run, where = report.run, str(report.folder)
    if run.wall_seconds < 0:
        return Refusal(EXIT_INFRA, where, f"it finished ({run.finished}) before it started ({run.started})")
    if moment(run.finished) > now + _CLOCKS:
        return Refusal(EXIT_INFRA, where, f"it finished in the future ({run.finished}): one of the clocks is wrong")
    if run.facts.tier != (tier := tier_of(run.backend)):
        why = f"its tier is {run.facts.tier or 'unknown'}, but {run.backend} clusters are of tier {tier}"
        return Refusal(EXIT_INFRA, where, why)
    if not ran(report.records):
        # A run without a plan has a problem, if it has anything at all: the problem's record says it better.
        return None if report.records else Refusal(EXIT_EMPTY, where, "no test was selected, so nothing ran")
    return None
