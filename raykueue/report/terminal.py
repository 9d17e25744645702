"""A report on one screen, for whoever has to decide: what was required, what happened, and the verdict last. Pure.

Everything fits the width, but for single words that are longer (a path is never cut: it is there to be copied).
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from raykueue.errors import EXIT_OK
from raykueue.model.findings import Verdict
from raykueue.report.record import JudgedFinding, Record
from raykueue.report.run_info import LoadedReport
from raykueue.report.verdict import DEFECTS, NOT_RUN
from raykueue.report.wording import (
    HEADLINES,
    count_of,
    duration,
    handed_over,
    headline,
    known_ids,
    one_line,
    pair_line,
    setting_line,
    tally,
    time_of_run,
    time_of_tests,
    title,
    told,
)

_WORDS: dict[Verdict, str] = {
    Verdict.PASS: "pass",
    Verdict.FAIL: "FAIL",
    Verdict.KNOWN: "known",
    Verdict.FIXED: "FIXED",
    Verdict.INFRA: "INFRA",
    Verdict.SKIPPED: "skip",
    Verdict.NOT_APPLICABLE: "n/a",
}
_COLOURS: dict[Verdict, str] = {
    Verdict.PASS: "32",
    Verdict.FAIL: "1;31",
    Verdict.KNOWN: "33",
    Verdict.FIXED: "1;31",
    Verdict.INFRA: "1;35",
    Verdict.SKIPPED: "2",
    Verdict.NOT_APPLICABLE: "2",
}
_INDENT = 9
"""Columns before a sentence: two blanks, the verdict, two blanks."""
_TIME = 11
"""Columns for a duration at the right."""
_LABEL = 10
"""Columns of the labels at the foot, and under a test."""
_EVERY_TEST = 30
"""Up to so many tests each has its line; beyond, a suite's passed and left-out tests are only counted."""
_DETAILS = 12
"""So many tests are told in full; the rest of those that are not green get one line."""
_LINES = 40
"""So many tests beyond `_EVERY_TEST` have a line at all."""
_DRIFT = 8
"""Differences between what ran and what was pinned; all of them are in summary.md."""
_MIN_WIDTH = 40
_AMOUNT = re.compile(r"(\d) (ms|s|min|h|CPU|[KMGT]i?B)\b")
"""A number and its unit stay on one line."""


def wants_colour(is_tty: bool, environ: Mapping[str, str]) -> bool:
    """Colour only for people: not into files and CI logs, nor where NO_COLOR (https://no-color.org) forbids it."""
    return is_tty and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def live_line(record: Record, n: int, total: int, width: int, *, colour: bool = False) -> str:
    """One line for a test that just ended: its number, verdict, duration and sentence, cut to the width."""
    digits = len(str(total))
    time = "" if record.verdict in NOT_RUN else duration(record.seconds)
    text = title(record)
    if record.verdict is not Verdict.PASS and record.reason:
        text += f" - {one_line(record.reason)}"
    head = f"[{n:>{digits}}/{total}] "
    line = _cut(f"{head}{_WORDS[record.verdict]:<5} {time:>8}  {text}", width)
    return _paint_word(line, len(head), record.verdict, colour)


def terminal(report: LoadedReport, width: int, colour: bool) -> str:
    """The summary that ends a run, and that `raykueue report` prints. Lines end with a line break each."""
    width = max(width, _MIN_WIDTH)
    lines = [
        *textwrap.wrap(f"raykueue: {pair_line(report.run)}", width),
        *textwrap.wrap(setting_line(report.run), width),
    ]
    lines += _tests(report, width, colour)
    lines.append("")
    lines += _foot(report, width)
    word = HEADLINES[report.run.exit_code]
    verdict = textwrap.wrap(f"{word}: {headline(report)} (exit code {report.run.exit_code})", width)
    if colour:
        style = "1;32" if report.run.exit_code == EXIT_OK else "1;31"
        verdict[0] = _paint(word, style) + verdict[0][len(word) :]
    return "\n".join([*lines, "", *verdict]) + "\n"


def _tests(report: LoadedReport, width: int, colour: bool) -> Iterator[str]:
    everything = len(report.records) <= _EVERY_TEST
    told_in_full = lines = hidden = 0
    for (_, suite), group in groupby(sorted(report.records, key=_suite), key=_suite):
        records = list(group)
        yield ""
        spent = duration(sum(record.seconds for record in records))
        yield _columns(f"{one_line(suite, width // 2)}: {tally(records)}", spent, width)
        for record in records:
            green = record.verdict is Verdict.PASS or record.verdict in NOT_RUN
            if not everything and green:
                continue
            if not everything and lines >= _LINES:
                hidden += 1
                continue
            lines += 1
            in_full = record.verdict is not Verdict.PASS and told_in_full < _DETAILS
            told_in_full += in_full and not green
            yield from _test(report, record, width, colour, in_full=in_full)
    if hidden:
        yield ""
        yield from textwrap.wrap(f"{count_of(hidden, 'more test')} not passed: see summary.md", width)
    if not everything:
        yield from _left_out(report.records, width)


def _test(report: LoadedReport, record: Record, width: int, colour: bool, *, in_full: bool) -> Iterator[str]:
    room = width - _INDENT - _TIME
    sentence = textwrap.wrap(title(record), room) if in_full else [_cut(title(record), room)]
    time = "" if record.verdict in NOT_RUN else duration(record.seconds)
    first = _columns(f"  {_WORDS[record.verdict]:<{_INDENT - 2}}{sentence[0]}", time, width)
    yield _paint_word(first, 2, record.verdict, colour)
    yield from (" " * _INDENT + more for more in sentence[1:])
    if in_full:
        yield from _details(report, record, width)
    elif record.verdict is Verdict.PASS:
        for judged in record.findings:
            if judged.explained_by == "expects":
                yield from _labelled(" " * _INDENT, f"as expected: {told(judged)}", width)


def _details(report: LoadedReport, record: Record, width: int) -> Iterator[str]:
    shown = [judged for judged in record.findings if not judged.finding.part_of and _matters(judged)]
    for judged in shown:
        yield from _labelled(" " * _INDENT, told(judged), width)
    repeats = any(record.reason.startswith(judged.finding.rule) for judged in shown)
    if record.reason and not repeats:
        yield from _labelled(" " * _INDENT, one_line(record.reason), width)
    for issue in known_ids(record):
        link = report.run.facts.known_links.get(issue, "")
        yield from _labelled(f"{' ' * _INDENT}{'known':<{_LABEL}}", one_line(f"{issue} {link}"), width)
    if record.verdict in DEFECTS or record.verdict is Verdict.INFRA:
        if record.journal:
            yield from _labelled(f"{' ' * _INDENT}{'journal':<{_LABEL}}", one_line(record.journal), width)
        if record.reproduce:
            yield from _command(record.reproduce, width)


def _matters(judged: JudgedFinding) -> bool:
    return judged.raised or judged.explained_by.startswith("known:")


def _left_out(records: Sequence[Record], width: int) -> Iterator[str]:
    groups: dict[tuple[Verdict, str], int] = {}
    for record in records:
        if record.verdict in NOT_RUN:
            key = (record.verdict, one_line(record.reason))
            groups[key] = groups.get(key, 0) + 1
    if groups:
        yield ""
    for (verdict, reason), number in sorted(groups.items(), key=lambda item: -item[1])[:_DETAILS]:
        yield from _labelled(f"  {_WORDS[verdict]:<{_INDENT - 2}}", f"{count_of(number, 'test')}: {reason}", width)
    if len(groups) > _DETAILS:
        yield f"  and {count_of(len(groups) - _DETAILS, 'other reason')}: see summary.md"


def _foot(report: LoadedReport, width: int) -> Iterator[str]:
    run, records = report.run, report.records
    for note in dict.fromkeys(one_line(note) for record in records for note in record.notes):
        yield from _labelled(f"{'Note':<{_LABEL}}", note, width)
    for difference in run.facts.drift[:_DRIFT]:
        yield from _labelled(f"{'Drift':<{_LABEL}}", one_line(difference), width)
    allowed = sum(judged.explained_by.startswith("allowance:") for record in records for judged in record.findings)
    if allowed:
        text = f"{count_of(allowed, 'finding')} within the bounds of ordinary operation, by allowances.toml"
        yield from _labelled(f"{'Allowed':<{_LABEL}}", text, width)
    if handed := handed_over(records):
        yield from _labelled(f"{'Quota':<{_LABEL}}", handed, width)
    yield from _labelled(f"{'Time':<{_LABEL}}", time_of_run(report), width)
    if any(record.seconds for record in records):
        yield from _labelled(f"{'Tests':<{_LABEL}}", time_of_tests(report), width)
    if run.facts.versions:
        text = one_line(", ".join(f"{name} {version}" for name, version in run.facts.versions.items()))
        yield from _labelled(f"{'Versions':<{_LABEL}}", text, width)
    yield from _labelled(f"{'Report':<{_LABEL}}", one_line(str(report.folder / "summary.md")), width)


def _suite(record: Record) -> tuple[bool, str]:
    return (record.of_run, record.suite)


def _labelled(label: str, text: str, width: int) -> list[str]:
    lines = textwrap.wrap(
        _AMOUNT.sub("\\1\0\\2", text),
        width,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]


def _command(command: str, width: int) -> Iterator[str]:
    """A command over several lines that a shell reads as one, so that it can be copied."""
    try:
        words = [shlex.quote(word) for word in shlex.split(one_line(command))]
    except ValueError:
        words = one_line(command).split()
    start = line = " " * _INDENT + f"{'again':<{_LABEL}}"
    for word in words:
        if line != start and len(line) + len(word) + 2 > width:
            yield f"{line}\\"
            start = line = " " * (_INDENT + 2)
        line += f"{word} "
    yield line.rstrip()


def _columns(left: str, right: str, width: int) -> str:
    room = width - len(right) - (1 if right else 0)
    return f"{_cut(left, room):<{room}} {right}".rstrip() if right else _cut(left, width)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)].rstrip() + "…"


def _paint_word(line: str, at: int, verdict: Verdict, colour: bool) -> str:
    word = _WORDS[verdict]
    if not colour or line[at : at + len(word)] != word:
        return line
    return line[:at] + _paint(word, _COLOURS[verdict]) + line[at + len(word) :]


def _paint(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m"
