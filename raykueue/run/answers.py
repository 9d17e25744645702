"""Findings and obligations as JSON, from the recorder to a test process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from raykueue.audit.answers import Circumstances
from raykueue.audit.handovers import HandOver
from raykueue.model.events import Moment
from raykueue.model.findings import Finding, Ref


@dataclass(frozen=True, slots=True)
class OpenObligation:
    """What a rule still waited for when the judging ended."""

    rule: str
    text: str
    until: int | None
    """Nanoseconds since the epoch; None: only an event would have ended it."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the recorder says of one scope. Final only if there is neither a problem nor an obligation."""

    findings: tuple[Finding, ...]
    handovers: tuple[HandOver, ...]
    circumstances: Mapping[str, Circumstances]
    """By finding id: what the bounds of its explanation depend on."""
    obligations: tuple[OpenObligation, ...]
    problems: tuple[str, ...]
    """Why nothing can be judged: gaps, late or unordered events, a ledger that stopped."""
    rev: int
    """Of the last barrier."""
    judged_ms: float

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Judgement:
        """From the answer to `judge`."""
        return cls(
            findings=tuple(finding_from_json(one) for one in body["findings"]),
            handovers=tuple(HandOver.from_json(one) for one in body["handovers"]),
            circumstances={key: Circumstances(**one) for key, one in body["circumstances"].items()},
            obligations=tuple(OpenObligation(**one) for one in body["obligations"]),
            problems=tuple(body["problems"]),
            rev=body["rev"],
            judged_ms=body["judged_ms"],
        )


def finding_to_json(finding: Finding) -> dict[str, Any]:
    """All fields, nested."""
    return asdict(finding)


def finding_from_json(body: Mapping[str, Any]) -> Finding:
    """The inverse of `finding_to_json`, also after a trip through JSON text."""
    at_least, at_most = body["seconds"]
    return Finding(
        **{
            **body,
            "objects": tuple(Ref(**one) for one in body["objects"]),
            "begin": Moment(**body["begin"]),
            "end": None if body["end"] is None else Moment(**body["end"]),
            "seconds": (at_least, at_most),
        }
    )
