"""Long journals, generated: RayJobs that come, run and go, with objects as large as real ones."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Iterator
from typing import Any

from raykueue.model.events import Event, Record
from raykueue.model.journal import encode
from tests.audit.journals import NAMESPACE
from tests.audit.lives import Ending, Plan, life

PER_SECOND = 20
"""Jobs that come: as fast as an embedded cluster can take them."""
PORTION = 250
"""Jobs that share a namespace and a ClusterQueue; the next ones come after they are gone."""
WORKERS = 2
ENDINGS: tuple[Ending, ...] = ("succeeds", "succeeds", "is deleted")
_BYTES = {"Pod": 4800, "RayJob": 3000, "RayCluster": 3000, "Workload": 2400, "Job": 3000, "ClusterQueue": 1450}
"""What an event of the kind has in a real journal, on average."""
_LASTING = ("LocalQueue", "ClusterQueue", "ResourceFlavor", "Node")
_UID = re.compile(r'"uid":"([^"]+)"')


def busy(jobs: int) -> Iterator[str]:
    """The lines of a journal of so many RayJobs, each with a head, two workers and a submitter."""
    rev, t = 0, 0
    for number, first in enumerate(range(0, jobs, PORTION)):
        records = _portion(min(PORTION, jobs - first))
        if first == 0:
            yield encode(records[0])
        last = records[-1]
        for record in records[1:]:
            assert isinstance(record, Event)
            moved = dataclasses.replace(record, rev=record.rev + rev, arrived=record.arrived + t)
            line = encode(_full_size(moved)).replace(NAMESPACE, f"team-{number}").replace('"cq"', f'"cq-{number}"')
            yield _UID.sub(rf'"uid":"\1-{number}"', line)
        assert isinstance(last, Event)
        rev, t = rev + last.rev, t + last.arrived - records[0].arrived + 10**9


@functools.cache
def _portion(jobs: int) -> list[Record]:
    plans = [
        Plan(start=number / PER_SECOND, runs=3.0, workers=WORKERS, ending=ENDINGS[number % len(ENDINGS)])
        for number in range(jobs)
    ]
    records = life(plans, cpu=100_000)
    last = records[-1]
    assert isinstance(last, Event)
    lasting = {event.kind: event for event in records if isinstance(event, Event) and event.kind in _LASTING}
    return records + [
        dataclasses.replace(event, type="DELETED", rev=last.rev + number, arrived=last.arrived)
        for number, event in enumerate(lasting.values(), 1)
    ]


def _full_size(event: Event) -> Event:
    metadata = {**event.object["metadata"], "annotations": _filling(event.kind)}
    return dataclasses.replace(event, object={**event.object, "metadata": metadata})


@functools.cache
def _filling(kind: str) -> dict[str, Any]:
    """What real objects have and nobody here reads: environment, probes, volumes."""
    missing = max(0, _BYTES.get(kind, 1000) - 900)
    return {f"example.com/filling-{number}": json.dumps({"value": "x" * 40}) for number in range(missing // 95)}
