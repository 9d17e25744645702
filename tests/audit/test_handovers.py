from __future__ import annotations

import json
from dataclasses import replace

from raykueue.audit.handovers import Donor, HandOver, table
from raykueue.model.events import Moment
from raykueue.model.findings import Ref


def at(rev: int, ms: int) -> Moment:
    return Moment(rev, ms * 10**6)


def job(name: str) -> Ref:
    return Ref("RayJob", "ns", name, f"uid-{name}")


def donor(name: str, released: Moment, gone: Moment | None) -> Donor:
    return Donor(job(name), Ref("Workload", "ns", f"w-{name}", f"w-{name}"), f"w-{name}#1", released, gone)


ONE = HandOver(
    cluster_queue="team",
    job=job("heir"),
    workload=Ref("Workload", "ns", "w-heir", "w-heir"),
    payer="w-heir#1",
    donors=(donor("old", at(10, 1000), at(40, 4000)), donor("older", at(5, 500), at(20, 2000))),
    debt={"cpu": 2000},
    gained=at(11, 1100),
    first_pod=at(30, 3000),
    peak={"cpu": 1500, "memory": 2**30},
    resource_seconds={"cpu": 1500.0},
    overlap_ms=1000.0,
    bound_ms=900.0,
    running_ms=0.0,
)


def test_its_times_are_those_of_the_last_donor() -> None:
    assert (ONE.released, ONE.gone) == (at(10, 1000), at(40, 4000))
    assert ONE.lead_ms == -1000.0


def test_what_has_not_happened_yet_has_no_time() -> None:
    waiting = replace(ONE, first_pod=None)
    assert (waiting.gone, waiting.lead_ms) == (at(40, 4000), None)
    living = replace(ONE, donors=(*ONE.donors, donor("still", at(6, 600), None)))
    assert (living.gone, living.lead_ms) == (None, None)


def test_it_survives_a_trip_through_json() -> None:
    for one in (ONE, replace(ONE, first_pod=None, donors=(donor("old", at(1, 1), None),))):
        assert HandOver.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_the_table_tells_each_in_two_lines() -> None:
    assert table([ONE, replace(ONE, first_pod=None, peak={}, overlap_ms=0.0)]).splitlines() == [
        "  re-used   new pod  old gone      lead   overlap  at once beyond the quota",
        "old, older -> heir (team)",
        "   100 ms   2000 ms   3000 ms  -1000 ms   1000 ms  1.5 CPU, 1 GiB",
        "old, older -> heir (team)",
        "   100 ms         -   3000 ms         -      0 ms  nothing",
    ]
    assert table([]) == ""


def test_the_table_fits_a_hundred_columns() -> None:
    many = tuple(donor(f"{'x' * 60}-{n}", at(n, n), at(n, n + 10**7)) for n in range(1, 5))
    long = replace(ONE, donors=many, peak={f"example.com/{'y' * 30}-{n}": 1 for n in range(4)})
    lines = table([long]).splitlines()
    assert max(map(len, lines)) == 100
    assert lines[1].endswith("…")
    assert "and 2 more -> heir (team)" in table([replace(long, donors=tuple(replace(d, job=job("d")) for d in many))])
