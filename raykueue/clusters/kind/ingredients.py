"""What a kind cluster is made with, and what it is called. Importing this costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raykueue.errors import ClusterError

BACKEND = "kind"
"""As `cluster.json` says it."""
KINDS_OWN = "kind.kubeconfig"
"""What kind itself writes and removes; ours is made from it."""


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What a kind cluster is made with."""

    kind: Path
    kubectl: Path
    node_image: str
    control_plane_images: Sequence[str]
    """References of what runs beside the control plane: the controllers."""
    worker_images: Sequence[str]
    """References of what runs on the workers: Ray."""
    archives: Path
    """The folder in which archives of images are kept."""


def node_prefix(cluster: str) -> str:
    """kind's name of a cluster of ours: nodes, network and volumes have it in theirs.

    Raises:
        ClusterError: kind would not take it.
    """
    if cluster != cluster.lower():
        raise ClusterError(f"cluster {cluster}: kind takes lower case only")
    return f"raykueue-{cluster}"
