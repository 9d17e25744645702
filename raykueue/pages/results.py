"""The last results of the deletion table, pair by pair: a small file beside the page that is made from them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raykueue.errors import UsageError
from raykueue.report.costs import Cost, costs
from raykueue.report.run_info import LoadedReport

_ROW = re.compile(r"^suites/deletion_policy/test_table\.py::test_policy\[(?P<row>[^\]]+)\]$")


@dataclass(frozen=True, slots=True)
class Results:
    """Of one pair."""

    verdicts: Mapping[str, str]
    """By the row's id."""
    costs: tuple[Cost, ...]


def of_report(report: LoadedReport) -> tuple[str, Results]:
    """(pair, results) of a finished run.

    Raises:
        UsageError: it ran nothing of the table.
    """
    found = ((_ROW.match(record.id), record.verdict.value) for record in report.records)
    verdicts = {match["row"]: verdict for match, verdict in found if match is not None}
    measured = tuple(costs(report.records))
    if not verdicts and not measured:
        raise UsageError(f"{report.folder}: it ran no test of suites/deletion_policy; run that first")
    return pair_key(report.run.pair), Results(verdicts, measured)


def pair_key(pair: Mapping[str, str]) -> str:
    """How results name a pair."""
    return f"KubeRay {pair['kuberay']}, Kueue {pair['kueue']}"


def read(text: str) -> dict[str, Results]:
    """From the file's text."""
    return {
        pair: Results(body["verdicts"], tuple(Cost.from_json(cost) for cost in body["costs"]))
        for pair, body in json.loads(text).items()
    }


def write(results: Mapping[str, Results]) -> str:
    """The file's text: sorted, so that a change is a small difference."""
    body: dict[str, Any] = {
        pair: {
            "verdicts": dict(sorted(about.verdicts.items())),
            "costs": [cost.to_json() for cost in sorted(about.costs, key=lambda cost: cost.row)],
        }
        for pair, about in sorted(results.items())
    }
    return json.dumps(body, indent=1) + "\n"


def merged(old: Mapping[str, Results], pair: str, new: Results) -> dict[str, Results]:
    """With what a run found in place of what was known of these rows; what it did not run stays."""
    before = old.get(pair, Results({}, ()))
    measured = {cost.row: cost for cost in (*before.costs, *new.costs)}
    return {**old, pair: Results({**before.verdicts, **new.verdicts}, tuple(measured.values()))}
