"""Because of what a test does not apply: names that a record carries, and that anybody can hold against its run. Pure.

needs:GATE    the pair does not have this gate (`raykueue/model/gates/`)
lacks:GATE    the pair has it
tier:NAME     the cluster is of another tier
faults:nodes  the cluster has no nodes that a test may end
exclusive     the cluster's controllers are not ours to change or end
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from raykueue.model.gates import BY_NAME

BACKENDS = {"control-plane": "embedded", "node": "kind"}
"""Tier to the backend that has it."""
BORROWED = "existing"
"""The backend of clusters that are not ours: no gate requires it, since what runs there is pinned by nobody."""
NODES, CONTROLLERS = "faults:nodes", "exclusive"
_BY_PAIR = frozenset({"needs", "lacks"})


def tier_of(backend: str) -> str:
    """What is real in the clusters of a backend."""
    return "control-plane" if backend == "embedded" else "node"


def excuses(absence: str) -> bool:
    """Whether a test may be missing because of it where it is required.

    A requirement names its kind of cluster, so that this one is of another kind is no excuse.
    """
    return absence.partition(":")[0] in _BY_PAIR


def doubts(absences: Iterable[str], pair: Mapping[str, str], backend: str) -> list[str]:
    """What of it is not so on this pair and backend, a sentence each."""
    return [why for absence in absences if (why := _doubt(absence, pair, backend))]


def _doubt(absence: str, pair: Mapping[str, str], backend: str) -> str:
    kind, _, name = absence.partition(":")
    if kind in _BY_PAIR:
        return _doubt_about_gate(kind, name, pair)
    if kind == "tier":
        return f"{backend} clusters are of tier {name}" if tier_of(backend) == name else ""
    so = {NODES: backend != "kind", CONTROLLERS: backend == BORROWED}.get(absence)
    if so is None:
        return f"nobody knows what {absence!r} means"
    return "" if so else f"{absence} is no obstacle on {backend} clusters"


def _doubt_about_gate(kind: str, name: str, pair: Mapping[str, str]) -> str:
    gate = BY_NAME.get(name)
    if gate is None:
        return f"there is no gate {name!r}"
    try:
        has = gate.open_for(pair)
    except ValueError as error:
        return str(error)
    if has == (kind == "lacks"):
        return ""
    return f"this pair {'has' if has else 'does not have'} {name} ({gate.source})"
