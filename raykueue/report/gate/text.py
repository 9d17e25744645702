"""A gate's answer on the terminal. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from raykueue.report.gate.decision import WORDS, Decision
from raykueue.report.gate.judging import Judged
from raykueue.report.verdict import counts
from raykueue.report.wording import MEANING, commit_word, count_of, duration, one_line

_SHOWN = 12
"""Of each kind of objection or change; all of them are in the summary."""


def text(decision: Decision) -> str:
    """Cells, objections by kind, what changed, and the verdict on the last line."""
    lines = [f"raykueue: gate {decision.gate}", ""]
    lines += [f"  {judged.cell}: {tally_of(judged)}" for judged in decision.cells]
    lines += _grouped("", [(one.kind, one.where, one.what) for one in decision.objections])
    lines += _grouped("", [("counted all the same", one.where, one.why) for one in decision.waived])
    if why := not_compared(decision):
        lines += ["", why]
    else:
        lines += ["", f"Since the baseline ({since(decision)}): {count_of(len(decision.changes), 'change')}"]
        lines += _grouped("  ", [(one.kind, str(one.cell), str(one)) for one in decision.changes])
        lines += _grouped("  ", [("not compared", one.why, str(one)) for one in decision.beside])
    return "\n".join([*lines, "", f"{headline(decision)} (exit code {decision.exit_code})", ""])


def headline(decision: Decision) -> str:
    """`gate nightly CLOSED: 2 failed, 1 missing`, or how much it looked at."""
    word = f"gate {decision.gate} {WORDS[decision.exit_code]}"
    if decision.waived:
        word += f" (with {count_of(len(decision.waived), 'report')} of other commits)"
    if decision.objections:
        kinds = Counter(one.kind for one in decision.objections)
        return f"{word}: " + ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    number = sum(len(judged.by_id) for judged in decision.cells)
    required = sum(len(judged.required) for judged in decision.cells)
    return f"{word}: {count_of(number, 'test')} on {count_of(len(decision.cells), 'pair')}, {required} required"


def not_compared(decision: Decision) -> str:
    """Why there was nothing to compare with; empty if there was."""
    if decision.baseline is None:
        return "No baseline was given, so nothing was compared."
    return "The baseline was refused, so nothing was compared." if decision.baseline.refusals else ""


def since(decision: Decision) -> str:
    """When the baseline ran, and of which commit it is."""
    reports = decision.baseline.reports if decision.baseline is not None else ()
    commits = dict.fromkeys(commit_word(report.run.facts.commit) for report in reports)
    return f"{min(report.run.started for report in reports)}, suite {', '.join(commits)}"


def tally_of(judged: Judged) -> str:
    """`80 pass, 3 known in 2 min 40 s`."""
    if not judged.reports:
        return "no report"
    found = counts(judged.records)
    words = ", ".join(f"{found[verdict]} {verdict.value}" for verdict in MEANING if found[verdict]) or "no test"
    return f"{words} in {duration(sum(report.run.wall_seconds for report in judged.reports))}"


def _grouped(indent: str, rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    by_kind: dict[tuple[str, str], list[str]] = {}
    for kind, where, what in rows:
        by_kind.setdefault((kind, where), []).append(one_line(what))
    for (kind, where), found in by_kind.items():
        yield ""
        yield f"{indent}{kind} ({len(found)}): {one_line(where)}"
        yield from (f"{indent}  {what}" for what in found[:_SHOWN])
        if len(found) > _SHOWN:
            yield f"{indent}  and {len(found) - _SHOWN} more"
