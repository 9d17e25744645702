"""What a recorder is told at start: `recorder.json` in the run's folder, and the names of its other files there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from raykueue.errors import RecorderError

CONFIG, JOURNAL, SOCKET, LOG = "recorder.json", "journal.jsonl", "recorder.sock", "recorder.log"
BARRIER_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class RecorderConfig:
    """Which cluster, which pair, which thresholds."""

    kubeconfig: str
    namespace: str
    """Of the sentinels: `raykueue-sentinel-<suffix>`."""
    context: str | None = None
    pair: Mapping[str, str] = field(default_factory=dict)
    """{"kubernetes": "1.34.4", "kueue": "0.19.2", "kuberay": "1.6.2"}"""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Written into the journal's header and given to the ledger. `barrier_timeout_s` is the recorder's own."""

    @property
    def barrier_timeout_s(self) -> float:
        """How long a barrier waits for its echoes."""
        return float(self.settings.get("barrier_timeout_s", BARRIER_TIMEOUT_S))

    def save(self, folder: Path) -> None:
        """Writes `recorder.json`."""
        (folder / CONFIG).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> RecorderConfig:
        """Reads `recorder.json`.

        Raises:
            RecorderError: it is missing or has other fields.
        """
        path = folder / CONFIG
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise RecorderError(f"{path}: expected a recorder's configuration, got: {error}") from error
