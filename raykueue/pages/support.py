"""The README's table of pairs: the class of each, and what its last run came to. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from raykueue.errors import EXIT_EMPTY, EXIT_FAILED, EXIT_OK, UsageError
from raykueue.model.node_images import kubernetes_of
from raykueue.model.versions import Pair, Versions
from raykueue.report.run_info import LoadedReport
from raykueue.report.wording import MEANING, count_of

BEGIN, END = "<!-- support: written by `raykueue docs support` -->", "<!-- support: end -->"
"""Lines of the README between which the table stands."""


@dataclass(frozen=True, slots=True)
class Last:
    """The last run of a pair, in the widest profile that it was told of."""

    date: str
    """UTC, as 2026-11-30."""
    profile: str
    backend: str
    exit_code: int
    counts: Mapping[str, int]
    """Records per verdict, where there are any."""


def last_of(reports: Iterable[LoadedReport]) -> dict[str, Last]:
    """By `KUEUE+KUBERAY`; of two reports about one pair the later counts.

    Raises:
        UsageError: a run was interrupted: half of it says nothing.
    """
    found: dict[str, Last] = {}
    for report in sorted(reports, key=lambda one: one.run.started):
        run = report.run
        if run.interrupted:
            raise UsageError(f"{report.folder}: the run was interrupted; take another one")
        counts = {verdict.value: run.counts[verdict.value] for verdict in MEANING if run.counts[verdict.value]}
        name = f"{run.pair['kueue']}+{run.pair['kuberay']}"
        found[name] = Last(run.started[:10], run.facts.profile, run.backend, run.exit_code, counts)
    return found


def read(text: str) -> dict[str, Last]:
    """From the file's text."""
    return {name: Last(**body) for name, body in json.loads(text or "{}").items()}


def write(last: Mapping[str, Last]) -> str:
    """The file's text: sorted, so that a change is a small difference."""
    return json.dumps({name: asdict(one) for name, one in sorted(last.items())}, indent=1) + "\n"


def table(versions: Versions, last: Mapping[str, Last]) -> str:
    """As Markdown, newest releases first and leftmost."""
    kueues = list(dict.fromkeys(pair.kueue for pair in versions.pairs))
    kuberays = list(dict.fromkeys(pair.kuberay for pair in versions.pairs))
    lines = [
        "| Kueue \\ KubeRay | " + " | ".join(kuberays) + " |",
        "|---|" + "---|" * len(kuberays),
        *(
            f"| {kueue} | "
            + " | ".join(_cell(versions.pair(kueue, kuberay), versions, last) for kuberay in kuberays)
            + " |"
            for kueue in kueues
        ),
    ]
    kubernetes = list(dict.fromkeys(pair.kubernetes for pair in versions.pairs))
    nodes = [kubernetes_of(versions.node_images[one]) for one in kubernetes if one in versions.node_images]
    kind = f"; on kind {', '.join(nodes)}, that of its node image" if nodes and nodes != kubernetes else ""
    about = f"All on Kubernetes {', '.join(kubernetes)}{kind}. {_when(last)}"
    return "\n".join([*lines, "", about, ""])


def into(readme: str, text: str) -> str:
    """The README with this table in the place of the one that it has.

    Raises:
        UsageError: it has no place for one.
    """
    before, begin, rest = readme.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not begin or not end:
        raise UsageError(f"README.md: expected the lines {BEGIN} and {END}, with the table of pairs between them")
    return f"{before}{begin}{text}{end}{after}"


def _cell(pair: Pair, versions: Versions, last: Mapping[str, Last]) -> str:
    klass = f"{pair.klass}, default" if pair == versions.default else pair.klass
    one = last.get(f"{pair.kueue}+{pair.kuberay}")
    return f"{klass}: {_result(one)}" if one is not None else klass


def _result(last: Last) -> str:
    known, failed = last.counts.get("known", 0), last.counts.get("fail", 0) + last.counts.get("fixed", 0)
    if last.exit_code == EXIT_OK:
        return f"green, {known} known" if known else "green"
    if last.exit_code == EXIT_FAILED:
        return f"**{count_of(failed, 'failure')}**"
    return "nothing applies" if last.exit_code == EXIT_EMPTY else "not judged"


def _when(last: Mapping[str, Last]) -> str:
    if not last:
        return "No results have been taken over yet."
    dates = sorted({one.date for one in last.values()})
    profiles = ", ".join(sorted({f"{one.profile} on {one.backend}" for one in last.values()}))
    span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"Results: {profiles}, {span}. *known*: tests that showed a recorded upstream defect."
