"""What a replay says, for people: findings with their timelines, or the books at one moment."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from raykueue.audit.books.entities import Hold, Pod
from raykueue.audit.levels import booked
from raykueue.audit.replay import steps
from raykueue.audit.timeline import timelines
from raykueue.model import views
from raykueue.model.events import Event
from raykueue.model.findings import Finding
from raykueue.model.quantities import PODS, in_units, unit
from raykueue.model.workloads import EVICTED
from raykueue.run.books_at import BooksAt, iso
from raykueue.run.replaying import Replayed, Saved

WIDTH = 100
_NARROWEST = 12
"""Columns are cut to no less, however wide the others are."""


def findings_text(
    saved: Saved, replayed: Replayed, stories: Mapping[str, Sequence[str]], differences: Sequence[str]
) -> str:
    """The whole answer of a replay; `stories` are timelines, by finding id."""
    lines = [_heading(saved)]
    lines += [f"not judged: {problem}" for problem in replayed.problems]
    for finding in replayed.findings:
        lines += ["", *_finding(finding), *(f"  {line}" for line in stories.get(finding.id, ()))]
    count = len(replayed.findings)
    lines += ["", f"{count or 'no'} finding{'' if count == 1 else 's'}"]
    if differences:
        lines += ["", "this is not what was judged live; another version of the rules, or a defect of raykueue:"]
        lines += [f"  {line}" for line in differences]
    return "".join(f"{line}\n" for line in lines)


def stories_text(saved: Saved, findings: Sequence[Finding]) -> str:
    """Each finding's timeline, headed by its rule and id, as the end of a failure's text; empty if there is none."""
    stories = timelines(findings, steps(saved.records, saved.judged), WIDTH)
    return "\n".join(
        "\n".join([f"around {one.rule} {one.id}:", *stories[one.id]]) for one in findings if stories[one.id]
    )


def books_text(saved: Saved, at: BooksAt) -> str:
    """The books at a moment."""
    when = f"revision {at.moment.rev}, +{at.offset:.3f} s, {iso(at.moment.t)}"
    lines = [_heading(saved), f"books at {when}: {at.folded} of {at.events} events are in", ""]
    rows = [
        (
            name or "(unknown)",
            flavor or "(none)",
            unit(resource),
            in_units(resource, level.nominal),
            booked(resource, level),
            in_units(resource, level.charged),
            in_units(resource, level.demand),
        )
        for (name, flavor, resource), level in at.levels
    ]
    head = ("CLUSTERQUEUE", "FLAVOR", "OF", "NOMINAL", "BOOKED", "CHARGED", "DEMAND")
    lines += _table(head, rows, "no ClusterQueue")
    if any(":" in row[4] for row in rows):
        lines.append("booked as usage:reservation where the two differ")
    lines += ["", *_table(("OPEN HOLD", "CLUSTERQUEUE", "SINCE", "", "CHARGED"), map(_hold, at.holds), "no open hold")]
    lines += ["", *_table(("POD", "PODSET", "", "ASKS", "PAYER"), map(_pod, at.pods), "no pod of a Ray job")]
    return "".join(f"{line}\n" for line in lines)


def _heading(saved: Saved) -> str:
    events = [record for record in saved.records if isinstance(record, Event)]
    pair = ", ".join(f"{name} {version}" for name, version in saved.header.pair.items())
    judged = f"; judged at revision {saved.judged.rev}" if saved.judged else ""
    return f"{saved.path.name}\n{len(events)} events, {pair}{judged}"


def _finding(finding: Finding) -> Iterator[str]:
    part = f", part of {finding.part_of}" if finding.part_of else ""
    yield f"{finding.id}  {finding.rule} ({finding.klass}, {finding.cause}{part})"
    yield from textwrap.wrap(finding.text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _hold(hold: Hold) -> tuple[str, ...]:
    state = "admitted" if hold.charge.admitted else "reserved"
    if views.is_true(hold.workload, EVICTED):
        state += ", evicted"
    since = "before the journal" if hold.before_journal else str(hold.begin)
    charged: dict[str, int] = {}
    for (_, resource), value in hold.charge.totals.items():
        charged[resource] = charged.get(resource, 0) + value
    return str(hold).removeprefix("Workload "), hold.charge.cluster_queue, since, state, _told(charged)


def _pod(pod: Pod) -> tuple[str, ...]:
    state = pod.state
    words = [str(views.status(pod.object).get("phase", "Pending"))]
    words += [word for word, true in (("gated", state.gated), ("terminating", state.terminating)) if true]
    words += [] if state.bound else ["no node"]
    asks = _told({r: value for r, value in state.demand.items() if r != PODS})
    payer = state.payer
    paid = "nobody" if payer is None else str(payer) + ("" if payer.end is None else " (ended)")
    where = f"{pod.ref.namespace}/{pod.ref.name}"
    return where, pod.pod_set or "(none)", ", ".join(words), asks, paid.removeprefix("Workload ")


def _told(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{in_units(r, value)} {unit(r)}" for r, value in sorted(amounts.items()) if value) or "nothing"


def _table(head: Sequence[str], rows: Iterable[tuple[str, ...]], empty: str) -> list[str]:
    body = list(rows)
    if not body:
        return [empty]
    widths = [max(len(row[column]) for row in [head, *body]) for column in range(len(head))]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return [
        "  ".join(_fit(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [tuple(head), *body]
    ]


def _fit(cell: str, width: int) -> str:
    """The end of a name tells it from its likes."""
    return cell if len(cell) <= width else f"…{cell[len(cell) - width + 1 :]}"
