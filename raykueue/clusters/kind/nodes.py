"""What is done to a node: it is lost and found again, its kubelet is restarted."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from raykueue.clusters.kind.docker import Docker
from raykueue.errors import ClusterError
from raykueue.kube.access import load_access
from raykueue.kube.client import Api
from raykueue.kube.waiting import Objects, until

READY_SECONDS = 120.0
"""A node that was started again has its kubelet up after 5 to 15 s, and longer on a machine with much to do."""
_ASK_SECONDS = 0.25
"""Between two looks whether a kubelet listens: nothing tells of it."""
_NODES = "/api/v1/nodes"


class Nodes:
    """The nodes of one cluster, by the names that they have there."""

    def __init__(self, docker: Docker, kubeconfig: Path, look: Callable[[], None]) -> None:
        self._docker = docker
        self._access = load_access(kubeconfig)
        self._look = look

    def lose(self, node: str) -> None:
        """Ends a node as a power cut does, and leaves it down."""
        self._docker.kill(node)

    def find(self, node: str) -> None:
        """Starts it again; returns when its kubelet answers and the node is Ready.

        Raises:
            ClusterError: not in time.
        """
        self._docker.start(node)
        self._until_kubelet_answers(node)

    def restart_kubelet(self, node: str) -> None:
        """Ends the kubelet and starts it again, while containers go on; returns when it answers and the node is Ready.

        Raises:
            ClusterError: not in time.
        """
        self._docker.restart_unit(node, "kubelet")
        self._until_kubelet_answers(node)

    def _until_kubelet_answers(self, node: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        api, said = Api(self._access), "nothing"
        while said != "ok":
            self._look()
            if time.monotonic() > deadline:
                raise ClusterError(f"the kubelet of node {node} does not answer after {READY_SECONDS:.0f} s: {said}")
            time.sleep(_ASK_SECONDS)
            try:
                said = api.text(f"{_NODES}/{node}/proxy/healthz", seconds=5)
            except ClusterError as error:
                said = str(error)

        def ready(found: Objects) -> bool | None:
            conditions = found.get(node, {}).get("status", {}).get("conditions", [])
            return True if any(one["type"] == "Ready" and one["status"] == "True" for one in conditions) else None

        try:
            until(self._access, _NODES, ready, max(deadline - time.monotonic(), _ASK_SECONDS), look=self._look)
        except TimeoutError:
            raise ClusterError(f"node {node} is not Ready {READY_SECONDS:.0f} s after it was started") from None
