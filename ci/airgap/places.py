"""Where the air-gapped path keeps what it makes, and what it must know to undo what it did."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from raykueue.clusters.folder import state_root
from raykueue.toolchain.store import cache_root

SOURCES = Path(__file__).resolve().parent
"""This folder: Go sources, the node's files, the script that the daemon starts in."""


@dataclass(frozen=True, slots=True)
class Places:
    """One daemon's folders; another RAYKUEUE_STATE is another daemon."""

    state: Path
    """Socket, log, and what is needed to stop. Gone after a stop."""
    data: Path
    """The daemon's data root: images stay there, as a cache."""

    @classmethod
    def default(cls) -> Places:
        """As RAYKUEUE_STATE and RAYKUEUE_CACHE say."""
        return cls(state_root().parent / "airgap", cache_root() / "airgap" / "docker")

    @property
    def socket(self) -> Path:
        """Where the daemon listens, and nowhere else."""
        return self.state / "docker.sock"

    @property
    def log(self) -> Path:
        """What the daemon prints."""
        return self.state / "docker.log"

    @property
    def config(self) -> Path:
        """The daemon's configuration."""
        return self.state / "daemon.json"

    @property
    def before(self) -> Path:
        """How the machine was before the daemon was started."""
        return self.state / "before.json"

    @property
    def process(self) -> Path:
        """Which process is the daemon."""
        return self.state / "process.json"

    @property
    def cgroup(self) -> str:
        """The name of the cgroup that holds all containers."""
        return f"raykueue-{hashlib.sha256(str(self.state).encode()).hexdigest()[:8]}"

    @property
    def docker_host(self) -> str:
        """The value of DOCKER_HOST."""
        return f"unix://{self.socket}"
