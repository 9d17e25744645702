"""Judges a journal that is over, without a cluster: the same fold, with the whole journal at hand."""

from __future__ import annotations

from collections.abc import Iterable

from raykueue.audit.ledger import Ledger
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Barrier, Event, Header, Record


def replay(records: Iterable[Record], thresholds: Thresholds | None = None) -> Ledger:
    """Folds a journal and returns its ledger.

    Thresholds and pair are those of the header; `thresholds` overrules it. Everything is folded, also what came after
    the last barrier. Raises ValueError if the journal has no header.
    """
    listed = list(records)
    if not listed or not isinstance(listed[0], Header):
        raise ValueError("a journal begins with a header, which says the pair and the thresholds; this one does not")
    header = listed[0]
    ledger = Ledger(thresholds or Thresholds.from_settings(header.settings), header.pair)
    for record in listed:
        ledger.add(record)
    last = max(record.arrived for record in listed)
    revs = [r.rev for r in listed if isinstance(r, Event | Barrier)]
    ledger.fold(Barrier(max(revs, default=0), last))
    return ledger
