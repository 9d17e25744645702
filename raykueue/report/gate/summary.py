"""A gate's answer as Markdown, for a CI run's page: the verdict first, within the size that such pages take. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from raykueue.model.findings import Verdict
from raykueue.report.gate.baseline import Beside
from raykueue.report.gate.changes import Change
from raykueue.report.gate.decision import WORDS, Decision
from raykueue.report.gate.evidence import Refusal
from raykueue.report.gate.judging import Judged, Objection
from raykueue.report.gate.text import headline, not_compared, since
from raykueue.report.summary import LIMIT, code, fit, inline, section
from raykueue.report.verdict import counts
from raykueue.report.wording import MEANING, duration, known_ids

_OBJECTIONS, _WAIVED, _CHANGES, _BESIDE, _KNOWN = 400 * 1024, 40 * 1024, 180 * 1024, 20 * 1024, 60 * 1024
"""Bytes at most; the grid of pairs gets what is left, and no gate has so many pairs."""
_WORD = "in the terminal's output, or in the reports"


def markdown(decision: Decision) -> str:
    """At most `LIMIT` bytes of UTF-8."""
    blocks = [
        f"# {inline(headline(decision))}\n\n",
        f"{WORDS[decision.exit_code]}, exit code {decision.exit_code}. Digests show damage, not forgery.\n\n",
        *section("Why it is closed", decision.objections, _objection, _OBJECTIONS, _WORD),
        *section("Counted all the same (--allow-other-commits)", decision.waived, _waived, _WAIVED, _WORD),
        *_changed(decision),
        *section("Of the baseline, compared with nothing", decision.beside, _beside, _BESIDE, _WORD),
        *section("Known upstream defects that show", _known(decision), str, _KNOWN, _WORD),
        "## Pairs\n\n" + _head(),
    ]
    rest = LIMIT - sum(len(block.encode()) for block in blocks)
    return "".join([*blocks, *fit(decision.cells, _row, rest, _WORD)])


def _objection(objection: Objection) -> str:
    return f"* **{objection.kind}**, {inline(objection.where)}: {inline(objection.what)}\n"


def _waived(refusal: Refusal) -> str:
    return f"* {inline(refusal.where)}: {inline(refusal.why)}\n"


def _changed(decision: Decision) -> list[str]:
    if why := not_compared(decision):
        return [f"## Since the baseline\n\n{why}\n\n"]
    blocks = section(f"Since the baseline ({inline(since(decision))})", decision.changes, _change, _CHANGES, _WORD)
    return blocks or [f"## Since the baseline ({inline(since(decision))})\n\nNothing changed.\n\n"]


def _change(change: Change) -> str:
    return f"* **{change.kind}**, {inline(str(change.cell))}: {inline(str(change))}\n"


def _beside(one: Beside) -> str:
    return f"* {inline(str(one))}; {inline(one.why)}\n"


def _known(decision: Decision) -> Iterator[str]:
    for judged in decision.cells:
        found: dict[str, int] = {}
        for record in judged.records:
            for issue in known_ids(record):
                found[issue] = found.get(issue, 0) + 1
        links = {name: link for report in judged.reports for name, link in report.run.facts.known_links.items()}
        for issue, number in sorted(found.items()):
            link = inline(links.get(issue, ""))
            yield f"* {inline(str(judged.cell))}: {code(issue)} in {number} of the tests {link}\n"


def _head() -> str:
    verdicts = " | ".join(verdict.value for verdict in MEANING)
    return f"| pair | required | {verdicts} | time |\n|---|--:|{'--:|' * len(MEANING)}--:|\n"


def _row(judged: Judged) -> str:
    found = counts(judged.records)
    bad = (Verdict.FAIL, Verdict.FIXED, Verdict.INFRA)
    cells = [f"**{found[one]}**" if found[one] and one in bad else str(found[one] or "") for one in MEANING]
    time = duration(sum(report.run.wall_seconds for report in judged.reports)) if judged.reports else "**no report**"
    return f"| {inline(str(judged.cell))} | {len(judged.required)} | {' | '.join(cells)} | {time} |\n"
