"""The words that all views of a report share: names of verdicts, durations, the headline. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from raykueue.errors import EXIT_EMPTY, EXIT_FAILED, EXIT_INFRA, EXIT_INTERRUPTED, EXIT_OK
from raykueue.model.findings import Verdict
from raykueue.model.node_images import NODE_IMAGE
from raykueue.report.record import PHASES, JudgedFinding, Record
from raykueue.report.run_info import LoadedReport, RunInfo
from raykueue.report.verdict import counts

MEANING: dict[Verdict, str] = {
    Verdict.FAIL: "the product did not do what is required",
    Verdict.FIXED: "a recorded upstream defect no longer shows: its record must go",
    Verdict.INFRA: "could not be found out",
    Verdict.KNOWN: "a recorded upstream defect, still there",
    Verdict.PASS: "as required",
    Verdict.NOT_APPLICABLE: "this pair or cluster doesn't have it",
    Verdict.SKIPPED: "left out, with a reason",
}
"""What each verdict says about a test, in order of importance to a reader."""

HEADLINES: dict[int, str] = {
    EXIT_OK: "GREEN",
    EXIT_FAILED: "FAILED",
    EXIT_INTERRUPTED: "INTERRUPTED",
    EXIT_INFRA: "NOT JUDGED",
    EXIT_EMPTY: "EMPTY",
}
"""The verdict on a run, by exit code."""

# Control characters (also those that start a terminal's escape sequences), lone surrogates, and the marks that
# reorder what is displayed. Tab and line breaks are space and are dealt with as such.
_UNSAFE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


_SHORT = re.compile("(@sha256:[0-9a-f]{12})[0-9a-f]+")


def safe(text: str) -> str:
    """Text that can be shown anywhere: nothing in it controls a terminal, and it can be written as UTF-8."""
    return _UNSAFE.sub("", text)


def one_line(text: str, limit: int = 600) -> str:
    """Safe text without line breaks, at most `limit` characters long."""
    joined = " ".join(safe(text).split())
    return joined if len(joined) <= limit else joined[: limit - 1].rstrip() + "…"


def title(record: Record) -> str:
    """The requirement of a test; where none is known (a lost test), its name in words. Rows of a table are told apart
    by their parameters in brackets."""
    path, bracket, row = record.id.partition("[")
    name = path.rpartition("::")[2].removeprefix("test_").replace("_", " ")
    sentence = one_line(record.sentence).removesuffix(".") or one_line(name) or "(no sentence)"
    return sentence + (f" {one_line(bracket + row, 120)}" if bracket else "")


def duration(seconds: float) -> str:
    """`840 ms`, `2.1 s`, `3 min 05 s`, `2 h 14 min`."""
    if seconds < 0.9995:
        return f"{max(seconds, 0.0) * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def count_of(number: int, thing: str) -> str:
    """`1 test`, `2 tests`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def pair_line(run: RunInfo) -> str:
    """`Kueue 0.19.2 + KubeRay 1.6.2 on Kubernetes 1.34.4`: the one that ran, if it is known."""
    line = f"Kueue {run.pair['kueue']} + KubeRay {run.pair['kuberay']}"
    if kubernetes := run.facts.versions.get("kubernetes") or run.pair.get("kubernetes"):
        line += f" on Kubernetes {kubernetes}"
    return one_line(line)


def commit_word(commit: str) -> str:
    """`b7ae8e3c0`, `b7ae8e3c0-dirty-0a1b2c3d4e5f`, or that nobody knows it."""
    name, dash, dirty = commit.partition("-")
    return f"{name[:9]}{dash}{dirty}" or "of unknown commit"


def setting_line(run: RunInfo) -> str:
    """What it ran on, and which suite: `embedded cluster, tier control-plane, profile core, suite 0.1.0 (b7ae8e3)`.

    A kind cluster also says of which node image it is.
    """
    facts = run.facts
    suite = f"suite {facts.suite_version or 'of unknown version'}" + (
        f" ({commit_word(facts.commit)})" if facts.commit else ""
    )
    nodes = _SHORT.sub(r"\1", run.facts.versions.get(NODE_IMAGE, ""))
    made = f" of {nodes}" if nodes else ""
    return one_line(f"{run.backend} cluster{made}, tier {facts.tier}, profile {facts.profile}, {suite}")


def tally(records: Iterable[Record]) -> str:
    """`1 fail, 1 known, 3 pass`: the verdicts that occur, the important ones first."""
    found = counts(records)
    return ", ".join(f"{found[verdict]} {verdict.value}" for verdict in MEANING if found[verdict])


def headline(report: LoadedReport) -> str:
    """The verdict on the run in one sentence, without the word of `HEADLINES`."""
    tests = [record for record in report.records if not record.of_run]
    found = counts(tests)
    left_out = found[Verdict.SKIPPED] + found[Verdict.NOT_APPLICABLE]
    ran = len(tests) - left_out
    parts = []
    if found[Verdict.FAIL]:
        parts.append(f"{found[Verdict.FAIL]} of {count_of(ran, 'test')} failed")
    if found[Verdict.FIXED]:
        parts.append(f"{count_of(found[Verdict.FIXED], 'recorded defect')} no longer shown")
    if report.run.interrupted:
        parts.append("the run was interrupted")
    if found[Verdict.INFRA]:
        parts.append(f"{found[Verdict.INFRA]} of {count_of(ran, 'test')} could not be judged")
    if outside := tally(record for record in report.records if record.of_run and record.verdict is not Verdict.PASS):
        parts.append(f"outside any test: {outside}")
    if not parts and ran:
        parts.append(f"{found[Verdict.PASS]} of {count_of(ran, 'test')} passed")
    if found[Verdict.KNOWN]:
        parts.append(f"{count_of(found[Verdict.KNOWN], 'test')} showed a known upstream defect")
    if report.run.facts.drift:
        parts.append("what ran was not what was pinned (--allow-drift)")
    if not ran:
        parts.append(f"nothing ran: {tally(tests) or 'no test was selected'}")
    return "; ".join(parts)


def told(judged: JudgedFinding) -> str:
    """A finding in words: rule, class and cause, then its own text, which has the amounts and milliseconds."""
    finding = judged.finding
    about = f"{finding.klass}, {finding.cause}" if finding.cause else finding.klass
    return one_line(f"{finding.rule} ({about}): {finding.text}", 1000)


def known_ids(record: Record) -> list[str]:
    """The known issues that explain findings of a record, each once."""
    prefix = "known:"
    explained = (judged.explained_by for judged in record.findings)
    return list(dict.fromkeys(by.removeprefix(prefix) for by in explained if by.startswith(prefix)))


def handed_over(records: Iterable[Record]) -> str:
    """`4 hand-overs while old pods still lived, 1 of them run on twice, for 5.1 s at most`; empty if there were none.

    A hand-over is quota that was given to somebody while the pods that had it before still lived.
    """
    found = [one for record in records for one in record.handovers]
    if not found:
        return ""
    twice = [one.overlap_ms / 1e3 for one in found if one.peak]
    text = f"{count_of(len(found), 'hand-over')} while old pods still lived"
    return text + (f", {len(twice)} of them run on twice, for {duration(max(twice))} at most" if twice else "")


def time_of_run(report: LoadedReport) -> str:
    """`68.0 s in all; cluster start 11.2 s, controllers 6.0 s`."""
    parts = ", ".join(f"{name} {duration(seconds)}" for name, seconds in report.run.facts.timings.items())
    return one_line(f"{duration(report.run.wall_seconds)} in all" + (f"; {parts}" if parts else ""))


def time_of_tests(report: LoadedReport) -> str:
    """Seconds of all tests, phase by phase, and over how many processes they add up."""
    sums = {phase: sum(record.phases.get(phase, 0.0) for record in report.records) for phase in PHASES}
    workers = len({record.worker for record in report.records if record.worker})
    beside = f" added up over {workers} processes side by side" if workers > 1 else ""
    return f"{duration(sum(sums.values()))}{beside}; " + ", ".join(
        f"{phase} {duration(seconds)}" for phase, seconds in sums.items()
    )
