"""What is done to a node: it is lost and found again, its kubelet is restarted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from raykueue.clusters.kind.docker import Docker
from raykueue.errors import ClusterError
from raykueue.kube.access import load_access
from raykueue.kube.client import Api
from raykueue.kube.waiting import Objects, until
from raykueue.model.views import is_true

READY_SECONDS = 120.0
"""A node that was started again has its kubelet up after 5 to 15 s, and longer on a machine with much to do."""
_ASK_SECONDS = 0.25
"""Between two looks at what a kubelet knows: nothing tells of it."""
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
        """Starts it again; returns when its kubelet knows its pods and the node is Ready.

        Raises:
            ClusterError: not in time.
        """
        self._docker.start(node)
        self._until_it_is_back(node)

    def restart_kubelet(self, node: str) -> None:
        """Ends the kubelet and starts it again, while containers go on; returns as `find` does.

        Raises:
            ClusterError: not in time.
        """
        self._docker.restart_unit(node, "kubelet")
        self._until_it_is_back(node)

    def _until_it_is_back(self, node: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        api, lacking = Api(self._access), "it was not asked yet"
        while lacking:
            self._look()
            if time.monotonic() > deadline:
                raise ClusterError(f"the kubelet of node {node} is not back after {READY_SECONDS:.0f} s: {lacking}")
            time.sleep(_ASK_SECONDS)
            try:
                lacking = _lacking(api, node)
            except ClusterError as error:
                lacking = str(error)

        def ready(found: Objects) -> bool | None:
            return True if node in found and is_true(found[node], "Ready") else None

        try:
            until(self._access, _NODES, ready, max(deadline - time.monotonic(), _ASK_SECONDS), look=self._look)
        except TimeoutError:
            raise ClusterError(f"node {node} is not Ready {READY_SECONDS:.0f} s after it was started") from None


def _lacking(api: Api, node: str) -> str:
    """What a kubelet still has to learn: it listens, and is healthy, before it knows which pods are its own."""
    known = {pod["metadata"]["uid"] for pod in api.get(f"{_NODES}/{node}/proxy/pods").get("items") or []}
    placed = api.get("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")["items"]
    unknown = [pod["metadata"]["name"] for pod in placed if pod["metadata"]["uid"] not in known and not _is_over(pod)]
    return f"it does not know of {', '.join(unknown)}" if unknown else ""


def _is_over(pod: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
