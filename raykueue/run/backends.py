"""Which kind of cluster a run gets: the one place that knows them all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from raykueue.clusters.embedded.cluster import EmbeddedCluster
from raykueue.clusters.existing import installed, kubeconfig
from raykueue.clusters.folder import ClusterFolder, made_by
from raykueue.clusters.protocol import Cluster
from raykueue.errors import ClusterError, UsageError
from raykueue.kube.access import load_access
from raykueue.kube.client import Api
from raykueue.model.versions import Pair, Versions
from raykueue.run.assembly import Assembly, ExistingAssembly, KindAssembly, assemble, assemble_for_kind, ray_socket
from raykueue.run.options import RunOptions
from raykueue.toolchain.builder import Toolchain

Log = Callable[[str], None]
"""A line for people. An empty one says nothing: it asks whether to go on, and the answer is an error if not."""


NODE_IMAGE = "RAYKUEUE_KIND_IMAGE"
"""The variable that says what kind's nodes are made from where `--kind-image` doesn't; without both, the pinned one."""


class Backend(Protocol):
    """How clusters of one kind are made."""

    @property
    def name(self) -> str:
        """As `--cluster` names it."""
        ...

    def preflight(self, folder: ClusterFolder) -> None:
        """Returns if there can be a cluster here; what can be seen at once, before anything is built.

        Raises:
            ClusterError: there can't; the message says what to do.
        """
        ...

    def pair(self, versions: Versions, options: RunOptions) -> Pair:
        """The versions that run, or will.

        Raises:
            UsageError: those that were asked for don't exist, or are not what is there.
            ClusterError: nobody can say.
        """
        ...

    def assemble(self, toolchain: Toolchain, versions: Versions, pair: Pair) -> Assembly:
        """Everything that a cluster of this pair consists of, built if it is missing."""
        ...

    def cluster(self, folder: ClusterFolder, assembly: Any, log: Log) -> Cluster:
        """A cluster in this folder, neither started nor attached to."""
        ...


@dataclass(frozen=True, slots=True)
class Embedded:
    """Processes on loopback."""

    name: str = "embedded"

    def preflight(self, folder: ClusterFolder) -> None:
        """It runs anywhere."""

    def pair(self, versions: Versions, options: RunOptions) -> Pair:
        """As the command line says, else the default."""
        return versions.pair(options.kueue, options.kuberay, options.kubernetes)

    def assemble(self, toolchain: Toolchain, versions: Versions, pair: Pair) -> Assembly:
        """Binaries."""
        return assemble(toolchain, versions, pair)

    def cluster(self, folder: ClusterFolder, assembly: Any, log: Log) -> Cluster:
        """Of processes."""
        return EmbeddedCluster(folder, assembly.binaries, assembly.kwok_sources, assembly.cache, log)


@dataclass(frozen=True, slots=True)
class Kind:
    """Nodes in containers."""

    node_image: str | None = None
    name: str = "kind"

    def preflight(self, folder: ClusterFolder) -> None:
        """The extra is installed, Docker answers, and there is room."""
        from raykueue.clusters.kind.cluster import KindCluster  # half a second that an embedded run does without

        KindCluster.preflight(folder)

    def pair(self, versions: Versions, options: RunOptions) -> Pair:
        """As the command line says, else the default."""
        return versions.pair(options.kueue, options.kuberay, options.kubernetes)

    def assemble(self, toolchain: Toolchain, versions: Versions, pair: Pair) -> KindAssembly:
        """kind, kubectl and images."""
        return assemble_for_kind(toolchain, versions, pair, self.node_image)

    def cluster(self, folder: ClusterFolder, assembly: Any, log: Log) -> Cluster:
        """Of containers."""
        from raykueue.clusters.kind.cluster import KindCluster

        return KindCluster(folder, assembly.ingredients, log)


@dataclass(frozen=True, slots=True)
class Existing:
    """Somebody's cluster."""

    context: str
    file: Path | None = None
    name: str = "existing"

    def preflight(self, folder: ClusterFolder) -> None:  # noqa: ARG002 - as others have it
        """The context is named, there, and not protected."""
        self._document()

    def pair(self, versions: Versions, options: RunOptions) -> Pair:
        """As it is found there."""
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "kubeconfig"
            kubeconfig.write(self._document(), path)
            found = installed.look(Api(load_access(path))).versions
        options.must_fit(found)
        chosen = Pair(found["kubernetes"], found["kueue"], found["kuberay"])
        return next((pair for pair in versions.pairs if pair.versions() == chosen.versions()), chosen)

    def assemble(self, toolchain: Toolchain, versions: Versions, pair: Pair) -> Assembly:  # noqa: ARG002 - as above
        """Nothing to build."""
        return ExistingAssembly(pair)

    def cluster(self, folder: ClusterFolder, assembly: Any, log: Log) -> Cluster:  # noqa: ARG002 - as above
        """Under the user's identity."""
        from raykueue.clusters.existing.cluster import ExistingCluster

        return ExistingCluster(folder, self._document())

    def _document(self) -> dict[str, Any]:
        files = [self.file] if self.file is not None else kubeconfig.user_kubeconfigs(os.environ)
        return kubeconfig.minimal(files, self.context)


def backend_of(options: RunOptions, folder: ClusterFolder | None = None) -> Backend:
    """The backend that a run asks for; for a cluster that was left up, in `folder`, the one that made it.

    Raises:
        ClusterError: this version does not have it.
        UsageError: the nodes of the one that was left up were made from another image than was asked for.
    """
    name = made_by(folder) if folder is not None else options.cluster
    match name:
        case "embedded":
            return Embedded()
        case "kind":
            return Kind(_node_image(options, folder))
        case "existing":
            return Existing(options.context or "", options.kubeconfig)
        case other:
            raise ClusterError(f"no backend {other!r} can make a cluster")


def _node_image(options: RunOptions, folder: ClusterFolder | None) -> str | None:
    """What the nodes of a cluster that was left up were made from is past choosing; None: what is pinned."""
    asked = options.node_image
    if folder is None:
        return asked or os.environ.get(NODE_IMAGE) or None
    made = str(folder.about.get("node_image") or "")
    if made and asked and asked != made:
        raise UsageError(
            f"the nodes of cluster {folder.name} were made from {made}, but {asked} was asked for; "
            f"`raykueue down {folder.name}`, or leave the option away"
        )
    return made or asked


def remembered(assembly: Assembly) -> dict[str, Any]:
    """What whoever attaches to a cluster must know of how it was made: the image of kind's nodes.

    Also if it is the pinned one: whoever attaches may have pinned another.
    """
    return {"node_image": assembly.nodes.image} if assembly.nodes else {}


def ray_of(cluster: Cluster) -> dict[str, Any]:
    """How a Ray job is controlled: `{"simulated": SOCKET}`, or `{"real": {}}` where pods run what they say."""
    if isinstance(cluster, EmbeddedCluster):
        return {"simulated": str(ray_socket(cluster.socket_folder("ray")))}
    return {"real": {}}
