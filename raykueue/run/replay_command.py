"""`raykueue replay`: judges a saved journal again, or shows the books at one moment of it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from raykueue.audit.replay import steps
from raykueue.audit.rules import RULES
from raykueue.audit.timeline import timelines
from raykueue.errors import EXIT_FAILED, EXIT_INFRA, EXIT_OK, UsageError
from raykueue.run.answers import finding_to_json
from raykueue.run.books_at import BooksAt, books_at, iso
from raykueue.run.replay_text import WIDTH, books_text, findings_text
from raykueue.run.replaying import Saved, differences, judge_again, read

_DESCRIPTION = """\
Judges a journal that a failing test, or a run, has saved: the same fold and the same rules, without a cluster. It
prints every finding, explained or not, with a timeline of what happened around it.

Exit codes: 0 no finding, 1 findings, 3 nothing can be judged (the record has a hole), 4 this is no complete journal.
"""
_EXAMPLES = """\
examples:
  raykueue replay reports/latest/journals/preemption-….jsonl.gz
  raykueue replay JOURNAL --rule no-survivors      the findings of one rule
  raykueue replay JOURNAL --at 916                 the books at a revision
  raykueue replay JOURNAL --at +12.5s              12.5 s after the journal's first event
  raykueue replay JOURNAL --json | jq '.findings[].text'
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the sub-command; its namespace has `run`, which takes the arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "replay",
        help="judge a saved journal again, without a cluster",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("journal", metavar="JOURNAL", type=Path, help="a journal: .jsonl or .jsonl.gz")
    parser.add_argument("--at", metavar="MOMENT", help="show the books then: a revision, +SECONDS, or an ISO time")
    parser.add_argument("--rule", metavar="NAME", choices=[rule.name for rule in RULES], help="this rule's findings")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints what the arguments ask for.

    Raises:
        UsageError: the journal can't be read, or the moment is none of it.
    """
    if arguments.at and arguments.rule:
        raise UsageError("--at shows books, not findings: leave out --rule")
    saved = read(arguments.journal)
    if arguments.at:
        at = books_at(saved.records, arguments.at)
        sys.stdout.write(_dump(_books_json(at)) if arguments.json else books_text(saved, at))
        return EXIT_OK
    return _findings(saved, arguments.rule, as_json=arguments.json)


def _findings(saved: Saved, rule: str | None, *, as_json: bool) -> int:
    replayed = judge_again(saved)
    differ = differences(saved.found, replayed.findings) if saved.judged else []
    if rule:
        kept = tuple(one for one in replayed.findings if one.rule == rule)
        replayed = dataclasses.replace(replayed, findings=kept)
    stories = timelines(replayed.findings, steps(saved.records, saved.judged), WIDTH - 2)
    if as_json:
        found = [{**finding_to_json(one), "timeline": stories[one.id]} for one in replayed.findings]
        body = {"pair": saved.header.pair, "findings": found, "problems": replayed.problems, "differences": differ}
        sys.stdout.write(_dump(body))
    else:
        sys.stdout.write(findings_text(saved, replayed, stories, differ))
    if replayed.findings:
        return EXIT_FAILED
    return EXIT_INFRA if replayed.problems else EXIT_OK


def _books_json(at: BooksAt) -> dict[str, Any]:
    return {
        "rev": at.moment.rev,
        "t": at.moment.t,
        "time": iso(at.moment.t),
        "levels": [
            {"cluster_queue": name, "flavor": flavor, "resource": resource, **dataclasses.asdict(level)}
            for (name, flavor, resource), level in at.levels
        ],
        "holds": [
            {
                "payer": hold.payer,
                "workload": str(hold.ref),
                "cluster_queue": hold.charge.cluster_queue,
                "admitted": hold.charge.admitted,
                "since": hold.begin.rev,
                "charged": [[*key, value] for key, value in hold.charge.totals.items()],
            }
            for hold in at.holds
        ],
        "pods": [
            {
                "pod": f"{pod.ref.namespace}/{pod.ref.name}",
                "uid": pod.ref.uid,
                "pod_set": pod.pod_set,
                "demand": dict(pod.state.demand),
                "payer": pod.state.payer.payer if pod.state.payer else None,
                "paid": pod.state.payer is not None and pod.state.payer.end is None,
            }
            for pod in at.pods
        ],
    }


def _dump(body: dict[str, Any]) -> str:
    return json.dumps(body, indent=2) + "\n"
