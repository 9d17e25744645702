"""A report as Markdown: small enough for a CI job's summary page, and to be pasted into an issue. Pure.

The verdict comes first and the table of every test last, so that whatever is cut is what matters least. GitHub drops
a job summary above 1 MiB as a whole: this one never exceeds `LIMIT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from raykueue.audit.handovers import table
from raykueue.model.findings import Verdict
from raykueue.report import costs
from raykueue.report.record import JudgedFinding, Record
from raykueue.report.run_info import LoadedReport
from raykueue.report.verdict import DEFECTS, NOT_RUN
from raykueue.report.wording import (
    HEADLINES,
    MEANING,
    duration,
    handed_over,
    headline,
    known_ids,
    one_line,
    pair_line,
    safe,
    setting_line,
    time_of_run,
    time_of_tests,
    title,
    told,
)

T = TypeVar("T")

LIMIT = 800 * 1024
"""Bytes of UTF-8."""

_DEFECTS_LIMIT, _INFRA_LIMIT, _KNOWN_LIMIT, _NOTES_LIMIT = 400 * 1024, 80 * 1024, 80 * 1024, 40 * 1024
_FAILURE_CHARS = 6000
"""Of one failure's long text; all of it is in records.jsonl."""
_FINDINGS = 20
"""Of one test."""
_WHOLE = "in records.jsonl"
_RESERVE = 200
"""Bytes kept free for the note that says what was cut."""


def markdown(report: LoadedReport) -> str:
    """The text of summary.md, at most `LIMIT` bytes long."""
    run, records = report.run, report.records
    blocks = [
        f"# {HEADLINES[run.exit_code]}: {inline(headline(report))}\n\n",
        f"{inline(pair_line(run))}  \n{inline(setting_line(run))}  \n{run.started}\n\n",
        *_counts(report),
        *section("What ran was not what was pinned", run.facts.drift, lambda one: f"* {inline(one)}\n", _NOTES_LIMIT),
        *section("Failures", [r for r in records if r.verdict in DEFECTS], _defect, _DEFECTS_LIMIT),
        *section("Could not be judged", [r for r in records if r.verdict is Verdict.INFRA], _defect, _INFRA_LIMIT),
        *section("Known upstream defects", _known(report), str, _KNOWN_LIMIT),
        *section("Notes", _notes(records), str, _NOTES_LIMIT),
        *section("Replaced in manifests", _replaced(records), str, _NOTES_LIMIT),
        *_handovers(records),
        *_costs(records),
        "## Where the time went\n\n",
        f"* Run: {inline(time_of_run(report))}\n* Tests: {inline(time_of_tests(report))}\n\n",
        *_versions(report),
        "## Every test\n\n| verdict | requirement | time | remark |\n|---|---|--:|---|\n",
    ]
    rest = LIMIT - sum(len(block.encode()) for block in blocks)
    return "".join([*blocks, *fit(records, _row, rest)])


def inline(text: str) -> str:
    """Text as Markdown that shows it literally, in a sentence, a heading or a table's cell.

    Line breaks become blanks; `&`, `<` and `>` become entities, so that no text turns into HTML.
    """
    escaped = re.sub(r"([\\`*\[\]|~$])|(?<![^\W_])(_+)|(_+)(?![^\W_])", _escape, one_line(text, 2000))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def code(text: str) -> str:
    """Text as a code span, also in a table's cell: GFM splits cells at `|` even in code, unless it is escaped."""
    shown = one_line(text, 2000)
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}".replace("|", "\\|")


def fenced(text: str, language: str = "") -> str:
    """A code block, whatever the text contains, and a blank line."""
    shown = safe(text.replace("\r\n", "\n").replace("\r", "\n")).rstrip("\n")
    if len(shown) > _FAILURE_CHARS:
        shown = shown[:_FAILURE_CHARS] + "\n… (cut here; all of it is in records.jsonl)"
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}\n\n"


def _counts(report: LoadedReport) -> Iterator[str]:
    yield "| verdict | tests | |\n|---|--:|---|\n"
    for verdict, meaning in MEANING.items():
        if number := report.run.counts[verdict.value]:
            yield f"| {verdict.value} | {number} | {meaning} |\n"
    yield f"| **planned** | {report.run.planned} | |\n\n"


def _defect(record: Record) -> str:
    raised = [judged for judged in record.findings if judged.raised]
    text = f"### {inline(title(record))}\n\n{code(record.id)}: **{record.verdict.value}**"
    text += f", {inline(record.reason)}\n\n" if record.reason else "\n\n"
    text += _findings(raised)
    if record.failure:
        text += fenced(record.failure, "text")
    if record.journal:
        text += f"Journal: {code(record.journal)}\n\n"
    if record.reproduce:
        text += "Again:\n\n" + fenced(one_line(record.reproduce, _FAILURE_CHARS), "sh")
    return text


def _findings(findings: list[JudgedFinding]) -> str:
    lines = [f"* {inline(told(judged))}\n" for judged in findings[:_FINDINGS]]
    if len(findings) > _FINDINGS:
        lines.append(f"* and {len(findings) - _FINDINGS} more, in records.jsonl\n")
    return "".join(lines) + "\n" if lines else ""


def _known(report: LoadedReport) -> Iterator[str]:
    by_issue: dict[str, list[Record]] = {}
    for record in report.records:
        issues = known_ids(record) or ([""] if record.verdict is Verdict.KNOWN else [])
        for issue in issues:
            by_issue.setdefault(issue, []).append(record)
    for issue, records in by_issue.items():
        link = one_line(report.run.facts.known_links.get(issue, ""))
        name = code(issue) if issue else "Without a finding"
        yield f"* {name}{' ' + inline(link) if link else ''}\n"
        for record in records:
            about = [judged for judged in record.findings if issue and judged.explained_by == f"known:{issue}"]
            yield f"    * {inline(title(record))}: {inline(record.reason)}\n"
            yield from (f"        * {inline(told(judged))}\n" for judged in about[:_FINDINGS])


def _notes(records: Iterable[Record]) -> Iterator[str]:
    for note in dict.fromkeys(one_line(note, 2000) for record in records for note in record.notes):
        yield f"* Note: {inline(note)}\n"


def _replaced(records: Iterable[Record]) -> Iterator[str]:
    """Each once: most tests submit the same few manifests."""
    for one in dict.fromkeys(one for record in records for one in record.replaced):
        yield f"* {code(one.field)}: {code(one.manifest)} became {code(one.cluster)}\n"


def _handovers(records: Iterable[Record]) -> Iterator[str]:
    text = handed_over(records)
    if text:
        rows = table(one for record in records for one in record.handovers)
        yield f"## Hand-overs\n\n{inline(text)}\n\n{fenced(rows, 'text')}"


def _costs(records: Iterable[Record]) -> Iterator[str]:
    if told := costs.table(costs.costs(records)):
        yield f"## What each deletion policy costs\n\n{told}\n"


def _versions(report: LoadedReport) -> Iterator[str]:
    run = report.run
    yield "## Versions\n\n| | |\n|---|---|\n"
    for name, version in {**run.pair, **run.facts.versions}.items():
        yield f"| {inline(name)} | {code(version)} |\n"
    facts = run.facts
    for name, value in (("versions digest", facts.lock_digest), ("suite commit", facts.commit)):
        if value:
            yield f"| {name} | {code(value)} |\n"
    yield "\n"


def _row(record: Record) -> str:
    time = "" if record.verdict in NOT_RUN else duration(record.seconds)
    remark = inline(one_line(record.reason, 300))
    word = f"**{record.verdict.value}**" if record.verdict in DEFECTS else record.verdict.value
    return f"| {word} | {inline(title(record))} | {time} | {remark} |\n"


def section(heading: str, items: Iterable[T], render: Callable[[T], str], limit: int, whole: str = _WHOLE) -> list[str]:
    """A heading and what fits under it; nothing without an item."""
    blocks = fit(items, render, limit, whole)
    return [f"## {heading}\n\n", *blocks, "\n"] if blocks else []


def fit(items: Iterable[T], render: Callable[[T], str], limit: int, whole: str = _WHOLE) -> list[str]:
    """As many whole blocks as fit into `limit` bytes, and if some did not, a note that says where all of it is."""
    blocks: list[str] = []
    size = left_out = 0
    for item in items:
        if not left_out:
            block = render(item)
            size += len(block.encode())
            if size <= limit - _RESERVE:
                blocks.append(block)
                continue
        left_out += 1
    if left_out:
        blocks.append(f"\n*Cut here, to stay within a CI summary's size: {left_out} more, {whole}.*\n\n")
    return blocks


def _escape(match: re.Match[str]) -> str:
    return "".join(f"\\{character}" for character in match.group())


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
