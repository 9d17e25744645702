"""How a cluster stands, seen from outside: what runs, since when, and who uses it. Nothing is changed or locked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from raykueue.clusters.embedded.keeping import Keeping
from raykueue.clusters.folder import ClusterFolder
from raykueue.clusters.kind.commands import Commands
from raykueue.clusters.kind.docker import Docker
from raykueue.clusters.kind.ingredients import node_prefix
from raykueue.errors import ClusterError


@dataclass(frozen=True, slots=True)
class Standing:
    """One cluster that is alive."""

    name: str
    pair: Mapping[str, str]
    """Versions by product; empty while it is being started."""
    since: datetime | None
    """Local time; None while it is being started."""
    used_by: str
    """Such as "pid 12 (raykueue up) since 18:30:02"; empty if nobody uses it."""
    kubeconfig: str
    alive: int
    """Processes, or nodes in containers, that run."""
    ended: tuple[str, ...]
    """Components that don't run any more."""
    trouble: str = ""
    """Why the components are not known."""

    @classmethod
    def of(cls, folder: ClusterFolder) -> Standing:
        """As it is now."""
        about = folder.about
        components: dict[str, bool] = {}
        trouble = ""
        try:
            components = _containers(folder) if folder.removals() else _processes(folder)
        except ClusterError as error:
            trouble = str(error).splitlines()[0]
        return cls(
            name=folder.name,
            pair=about.get("pair", {}),
            since=datetime.fromtimestamp(about["started"]).astimezone() if "started" in about else None,
            used_by=folder.holder(),
            kubeconfig=about.get("kubeconfig", ""),
            alive=sum(components.values()),
            ended=tuple(name for name, alive in components.items() if not alive),
            trouble=trouble,
        )

    @property
    def processes(self) -> str:
        """`9/9`, `8/9 (kueue ended)`, or why that is not known."""
        if self.trouble:
            return self.trouble
        counted = f"{self.alive}/{self.alive + len(self.ended)}"
        return f"{counted} ({', '.join(self.ended)} ended)" if self.ended else counted


def _processes(folder: ClusterFolder) -> dict[str, bool]:
    keeping = Keeping(folder.path)
    try:
        return {name: bool(one["alive"]) for name, one in keeping.status().items()}
    finally:
        keeping.close()


def _containers(folder: ClusterFolder) -> dict[str, bool]:
    removal = folder.removals()[0]
    found = Docker(Commands(removal.env)).nodes(node_prefix(folder.name))
    if not found:
        raise ClusterError("its nodes are gone")
    return {name: state == "running" for name, state in found.items()}
