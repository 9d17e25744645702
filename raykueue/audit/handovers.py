"""Hand-overs: quota that was given to somebody while the pods that had it before still lived.

A hand-over is a hold that would not have fitted if the survivors of that moment were still charged. Those whose pods
they were are its donors, it is their heir.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from raykueue.model.events import Moment
from raykueue.model.findings import Ref
from raykueue.model.quantities import describe_all

_WIDTH = 100
_COLUMNS = (("re-used", 9), ("new pod", 10), ("old gone", 10), ("lead", 10), ("overlap", 10))


@dataclass(frozen=True, slots=True)
class Donor:
    """Who gave quota back while pods of its still lived."""

    job: Ref
    workload: Ref
    payer: str
    """`<Workload UID>#<n>`; empty if the pods were born after its release."""
    released: Moment
    """Its hold ended."""
    gone: Moment | None
    """Its last pod was terminal or gone; None: not yet."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """One, with its amounts per resource: millicores for cpu, bytes for memory, pieces for everything else."""

    cluster_queue: str
    """The heir's."""
    job: Ref
    """The heir."""
    workload: Ref
    payer: str
    donors: tuple[Donor, ...]
    debt: Mapping[str, int]
    """What would not have fitted."""
    gained: Moment
    """The heir was given the quota."""
    first_pod: Moment | None
    """Its first pod was made, or ungated."""
    peak: Mapping[str, int]
    """The most that old and new pods used at once beyond the quota."""
    resource_seconds: Mapping[str, float]
    overlap_ms: float
    """How long they did."""
    bound_ms: float
    """How long both had a pod on a node meanwhile."""
    running_ms: float
    """How long both had a pod that ran."""

    @property
    def released(self) -> Moment:
        """When the last of the donors gave its quota back."""
        return max(donor.released for donor in self.donors)

    @property
    def gone(self) -> Moment | None:
        """When the last old pod was gone; None: not yet."""
        ends = [donor.gone for donor in self.donors if donor.gone is not None]
        return max(ends) if len(ends) == len(self.donors) else None

    @property
    def lead_ms(self) -> float | None:
        """From the end of the last old pod to the first new one: above 0 if it was clean; None: one is not there."""
        return self.first_pod - self.gone if self.first_pod is not None and self.gone is not None else None

    def to_json(self) -> dict[str, Any]:
        """All fields, nested, as JSON has them."""
        body = asdict(self)
        return body | {"donors": list(body["donors"])}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> HandOver:
        """The inverse of `to_json`, also after a trip through JSON text."""
        return cls(
            **{
                **body,
                "job": Ref(**body["job"]),
                "workload": Ref(**body["workload"]),
                "donors": tuple(_donor(one) for one in body["donors"]),
                "gained": Moment(**body["gained"]),
                "first_pod": _moment(body["first_pod"]),
            }
        )


def table(handovers: Iterable[HandOver]) -> str:
    """Two lines each, at most 100 columns wide; times are milliseconds after the release. Empty without any."""
    lines = [line for one in handovers for line in _lines(one)]
    if not lines:
        return ""
    head = "".join(f"{name:>{width}}" for name, width in _COLUMNS) + "  at once beyond the quota"
    return "\n".join([head, *lines])


def _lines(one: HandOver) -> list[str]:
    start = one.released
    cells = (
        _ms(one.gained - start),
        _ms(one.first_pod - start if one.first_pod else None),
        _ms(one.gone - start if one.gone else None),
        _ms(one.lead_ms),
        _ms(one.overlap_ms),
    )
    numbers = "".join(f"{cell:>{width}}" for cell, (_, width) in zip(cells, _COLUMNS, strict=True))
    donors = ", ".join(donor.job.name for donor in one.donors[:2])
    more = f" and {len(one.donors) - 2} more" if len(one.donors) > 2 else ""
    return [_cut(f"{donors}{more} -> {one.job.name} ({one.cluster_queue})"), _cut(f"{numbers}  {_beyond(one)}")]


def _beyond(one: HandOver) -> str:
    return describe_all(one.peak) if one.peak else "nothing"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} ms"


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


def _donor(body: Mapping[str, Any]) -> Donor:
    return Donor(
        Ref(**body["job"]),
        Ref(**body["workload"]),
        body["payer"],
        Moment(**body["released"]),
        _moment(body["gone"]),
    )


def _moment(body: Mapping[str, Any] | None) -> Moment | None:
    return None if body is None else Moment(**body)
