"""The whole matrix at a glance, a row a pair and a column a suite: for a terminal, as Markdown and as JSON. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from raykueue.audit.explanations import KnownIssue
from raykueue.errors import EXIT_EMPTY, EXIT_FAILED, EXIT_INFRA, EXIT_INTERRUPTED, EXIT_OK
from raykueue.matrix import defects
from raykueue.matrix.differences import default_among, differences, in_short
from raykueue.matrix.matrix_file import Plan
from raykueue.matrix.outcome import Outcome, exit_code
from raykueue.matrix.selection import short
from raykueue.model.findings import Verdict
from raykueue.report.summary import code, inline
from raykueue.report.wording import HEADLINES, commit_word, count_of, duration, one_line

WORDS = {
    EXIT_OK: "green",
    EXIT_FAILED: "FAILED",
    EXIT_INTERRUPTED: "interrupted",
    EXIT_INFRA: "INFRA",
    EXIT_EMPTY: "EMPTY",
}
"""The verdict on a pair, by exit code."""
LETTERS: dict[Verdict, str] = {
    Verdict.FAIL: "F",
    Verdict.FIXED: "X",
    Verdict.INFRA: "I",
    Verdict.KNOWN: "k",
    Verdict.PASS: "",
    Verdict.NOT_APPLICABLE: "n",
    Verdict.SKIPPED: "s",
}
"""How a cell writes how many tests came to what, in this order; a bare number has passed."""
LEGEND = "a number alone: passed; k known, n not-applicable, s skipped, F failed, X fixed, I not judged"

_SHOWN = 40
"""Differences of one pair in Markdown; all of them are in the JSON."""


def word(one: Outcome) -> str:
    """The verdict on a pair."""
    return "n/a" if one.not_applicable else WORDS[one.code]


def headline(every: Sequence[Outcome], code_: int) -> str:
    """`GREEN: 28 of 28 pairs`, or what is not."""
    green = sum(one.code == EXIT_OK for one in every)
    rest = Counter(word(one) for one in every if one.code != EXIT_OK)
    text = f"{HEADLINES[code_]}: {green} of {count_of(len(every), 'pair')} green"
    return text + "".join(f", {number} {name}" for name, number in rest.items())


def rows(every: Sequence[Outcome], plan: Plan) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the table."""
    suites = _suites(every)
    default = default_among(every, plan.default)
    head = ["pair", "class", "verdict", *suites, "differs from the default pair", "time"]
    return head, [
        [
            short(one.pair) + (" *" if one.pair == plan.default else ""),
            one.pair.klass,
            word(one),
            *(_cell(one.suites().get(suite, Counter())) for suite in suites),
            one_line(one.reason, 100) or in_short(differences(one, default)),
            duration(one.seconds) if one.seconds else "",
        ]
        for one in every
    ]


def text(every: Sequence[Outcome], plan: Plan, *, interrupted: bool = False) -> str:
    """For a terminal: the table, what it means, and the verdict last."""
    head, cells = rows(every, plan)
    lines = [[name.upper() for name in head], *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    table = "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines)
    built, tested = sum(one.build_seconds for one in every), sum(one.seconds for one in every)
    return (
        f"{table}\n\n{LEGEND}; * default pair\n"
        f"profile {plan.profile}; pairs {duration(tested)} added up, binaries {duration(built)}\n\n"
        f"{headline(every, exit_code(every, interrupted=interrupted))} "
        f"(exit code {exit_code(every, interrupted=interrupted)})\n"
    )


def markdown(
    every: Sequence[Outcome], plan: Plan, issues: Sequence[KnownIssue] = (), *, interrupted: bool = False
) -> str:
    """For a CI job's summary page: the verdict first, the grid, recorded defects, and what differs, pair by pair."""
    head, cells = rows(every, plan)
    result = exit_code(every, interrupted=interrupted)
    default = default_among(every, plan.default)
    lines = [f"# {headline(every, result)}", ""]
    lines += [
        f"Profile {plan.profile}, suite {inline(plan.suite_version)} ({inline(commit_word(plan.commit))}). {LEGEND}.",
        "",
    ]
    lines += [_line(head), "|---" * len(head) + "|", *(_line(map(inline, row)) for row in cells), ""]
    if default is None:
        lines += ["The default pair is not among them, or was not judged, so nothing is compared with it.", ""]
    lines.append(defects.table(defects.proofs(every, issues)))
    for one in every:
        lines += _about(one, default)
    return "\n".join(lines)


def as_json(every: Sequence[Outcome], plan: Plan, *, interrupted: bool = False) -> dict[str, Any]:
    """For programs."""
    default = default_among(every, plan.default)
    return {
        "exit_code": exit_code(every, interrupted=interrupted),
        "profile": plan.profile,
        "commit": plan.commit,
        "lock": plan.lock,
        "pairs": [
            {
                **one.pair.versions(),
                "class": one.pair.klass,
                "verdict": word(one),
                "exit_code": one.code,
                "reason": one.reason,
                "report": str(one.report.folder) if one.report else "",
                "suites": {
                    suite: {verdict.value: number for verdict, number in counted.items()}
                    for suite, counted in one.suites().items()
                },
                "differs": [
                    {"test": each.test, "default": each.there, "here": each.here, "why": each.why}
                    for each in differences(one, default)
                ],
                "seconds": round(one.seconds, 1),
                "build_seconds": round(one.build_seconds, 1),
            }
            for one in every
        ],
    }


def _about(one: Outcome, default: Outcome | None) -> Iterator[str]:
    found = differences(one, default)
    if not found and one.code == EXIT_OK:
        return
    yield f"## {short(one.pair)}: {word(one)}"
    yield ""
    if one.reason:
        yield from (inline(one.reason), "")
    for each in found[:_SHOWN]:
        why = f": {inline(one_line(each.why, 300))}" if each.why else ""
        yield f"* {code(each.test)} {each.there} → **{each.here}**{why}"
    if len(found) > _SHOWN:
        yield f"* and {len(found) - _SHOWN} more"
    if default is None or one.pair == default.pair:
        yield from (f"* {code(r.id)} **{r.verdict.value}**: {inline(one_line(r.reason, 300))}" for r in _bad(one))
    yield ""


def _bad(one: Outcome) -> list[Any]:
    return [r for r in one.records if r.verdict in (Verdict.FAIL, Verdict.FIXED, Verdict.INFRA)][:_SHOWN]


def _suites(every: Iterable[Outcome]) -> list[str]:
    found = dict.fromkeys(suite for one in every for suite in one.suites())
    return [*(suite for suite in found if suite != "run"), *(suite for suite in found if suite == "run")]


def _cell(counted: Counter[Verdict]) -> str:
    return " ".join(f"{counted[verdict]}{letter}" for verdict, letter in LETTERS.items() if counted[verdict]) or "-"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
