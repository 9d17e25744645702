"""pytest-kind's cluster with binaries of ours, the only place that imports it: it is GPL-3, and an extra.

What it does itself is kept as far as it goes: names, paths, `kubectl`, `port_forward`. Creating and deleting are ours,
since it can't wait, has no deadline, and leaves a failed cluster as it is.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raykueue.clusters.kind.commands import Commands
from raykueue.errors import ClusterError

if TYPE_CHECKING:
    Driver = Any
    """pytest_kind.KindCluster, which is not there unless the extra is installed."""

CREATE_SECONDS = 6 * 60.0
WAIT_SECONDS = 180
"""Until the control plane is Ready, of which `kind create cluster` makes sure itself."""
DELETE_SECONDS = 120.0
EXPORT_SECONDS = 120.0
LOAD_SECONDS = 5 * 60.0


def check_extra() -> None:
    """Returns if pytest-kind is installed.

    Raises:
        ClusterError: it isn't; the message says how to install it.
    """
    _base()


def kind_cluster(name: str, kubeconfig: Path, image: str, kind: Path, kubectl: Path, commands: Commands) -> Driver:
    """A driver of one kind cluster, which need not exist yet; nothing is started, downloaded or looked up.

    Raises:
        ClusterError: the extra is not installed, or the working directory can't be written.
    """
    base = _base()

    class PinnedKindCluster(base):  # type: ignore[misc, valid-type]  # known at run time only
        """With binaries that are there already, deadlines, and a kubeconfig in every call."""

        def ensure_kind(self) -> None:
            """Nothing is ever downloaded."""

        def ensure_kubectl(self) -> None:
            """Nothing is ever downloaded."""

        def create(self, config_file: Path | None = None) -> None:
            """Nodes up, control plane Ready. A failure leaves the nodes, so that their logs can be kept."""
            more = ["--config", str(config_file)] if config_file else []
            commands.persistently(
                f"creating kind cluster {name}",
                [*self._words("create", "cluster"), "--image", image, "--wait", f"{WAIT_SECONDS}s", "--retain", *more],
                CREATE_SECONDS,
                undo=self.delete,
            )

        def delete(self) -> None:
            """Nodes and their volumes; does no harm if there are none."""
            commands.run(f"deleting kind cluster {name}", self._words("delete", "cluster"), DELETE_SECONDS)

        def early_kubeconfig(self) -> str:
            """The administrator's kubeconfig, as soon as the control plane has one."""
            argv = [self.kind_path, "get", "kubeconfig", "--name", name]
            return commands.run(f"asking for the kubeconfig of {name}", argv, 20.0)

        def load_archive(self, archive: Path, nodes: list[str]) -> None:
            """The images of an archive into these nodes."""
            argv = [self.kind_path, "load", "image-archive", archive, "--name", name, "--nodes", ",".join(nodes)]
            commands.run(f"loading {archive.name} into {', '.join(nodes)}", argv, LOAD_SECONDS)

        def export_logs(self, folder: Path) -> None:
            """Logs of nodes and pods, in kind's own layout."""
            argv = [self.kind_path, "export", "logs", folder, "--name", name]
            commands.run(f"exporting the logs of {name}", argv, EXPORT_SECONDS)

        def seen_by_kubectl(self, admin: Path) -> str:
            """What is there, and what happened, as a person would look first."""
            self.kubeconfig_path = admin
            looks = (("get", "nodes,pods", "--all-namespaces", "--output", "wide"), ("get", "events", "-A"))
            return "\n".join(self.kubectl(*look, "--request-timeout=10s", timeout=30) for look in looks)

        def _words(self, *what: str) -> list[str]:
            return [str(self.kind_path), *what, "--name", name, "--kubeconfig", str(self.kubeconfig_path)]

    try:
        driver = PinnedKindCluster(name, kubeconfig, image, kind, kubectl)
    except OSError as error:
        raise ClusterError(f"pytest-kind makes .pytest-kind in the working directory, which failed: {error}") from error
    # Made for a kubeconfig and binaries of its own, of which it has none here.
    for made in (driver.path, driver.path.parent):
        with contextlib.suppress(OSError):
            made.rmdir()
    return driver


def _base() -> Any:
    try:
        from pytest_kind import KindCluster
    except ImportError as error:
        raise ClusterError(
            f"--cluster kind needs the extra `kind` ({error.name or error} is missing): pip install 'raykueue[kind]'"
        ) from None
    return KindCluster
