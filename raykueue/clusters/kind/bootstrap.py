"""The steps by which a kind cluster comes up."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from raykueue.clusters.kind.commands import CommandFailed, CommandSlow
from raykueue.clusters.kind.config import config, fake_gpus, workers
from raykueue.clusters.kind.images import Images
from raykueue.clusters.kubeconfig import write_kubeconfig
from raykueue.clusters.pki import write_secret
from raykueue.clusters.protocol import Manifests
from raykueue.errors import ClusterError
from raykueue.kube.access import load_access
from raykueue.kube.apply import apply
from raykueue.kube.client import Api
from raykueue.kube.crds import wait_served
from raykueue.kube.waiting import Objects, until

API_SECONDS = 300.0
"""Nodes and control plane on a full machine; idle, 15 to 20 s."""
SERVED_SECONDS = 60.0
_ASK_SECONDS = 1.0
"""Between two looks whether kubeadm has written the administrator's kubeconfig: it tells nobody."""
_POLL_SECONDS = 0.1
_RIGHTS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubeadm:cluster-admins"
_NODES = "/api/v1/nodes"
_DAEMON_SETS = "/apis/apps/v1/namespaces/kube-system/daemonsets"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/kube-system/deployments"


class Bootstrap:
    """Brings up one cluster; each method is a step, and says in `cluster.py` what it comes after."""

    def __init__(
        self, folder: Path, kubeconfig: Path, name: str, driver: Any, images: Images, look: Callable[[], None]
    ) -> None:
        self._folder = folder
        self._kubeconfig = kubeconfig
        self._name = name
        self._driver = driver
        self._images = images
        self._look = look
        self._client: Api | None = None
        self._archives: dict[str, Path] = {}

    def create_nodes(self) -> None:
        """All nodes joined, the control plane Ready."""
        file = self._folder / "kind.yaml"
        file.write_text(config(self._name))
        self._driver.create(file)

    def wait_api(self) -> None:
        """The API server answers, long before kind is done with the workers."""
        deadline = time.monotonic() + API_SECONDS
        while not self._answers():
            self._look()
            if time.monotonic() > deadline:
                raise ClusterError(f"the API server of {self._name} does not answer after {API_SECONDS:.0f} s")
            time.sleep(_ASK_SECONDS)

    def establish(self, crds: Manifests) -> None:
        """Custom kinds are served."""
        self.apply(crds)
        wait_served(self._api, crds, self._until_served)

    def apply(self, manifests: Manifests) -> None:
        """Objects are there, as the manifests say."""
        apply(self._api, manifests)

    def claim_gpus(self) -> None:
        """Every worker claims to have GPUs, as soon as it is registered: kind waits for the control plane only."""
        wanted = set(workers(self._name))

        def registered(found: Objects) -> bool | None:
            return True if wanted <= set(found) else None

        try:
            until(load_access(self._kubeconfig), _NODES, registered, API_SECONDS, look=self._look)
        except TimeoutError:
            raise ClusterError(f"not all of {', '.join(sorted(wanted))} registered in {API_SECONDS:.0f} s") from None
        for node in sorted(wanted):
            self._api.merge(f"{_NODES}/{node}/status", fake_gpus())

    def free_cpu(self) -> None:
        """Network and names ask for no CPU, so that a worker's is Ray's: a node has as many cores as this machine.

        As soon as they are installed, which is before there are workers. kube-proxy asks for none.
        """
        for kind, path in (("network", _DAEMON_SETS), ("DNS", _DEPLOYMENTS)):
            try:
                every = until(load_access(self._kubeconfig), path, _but_proxy, API_SECONDS, look=self._look)
            except TimeoutError:
                where = path.rpartition("/")[2]
                raise ClusterError(f"{self._name} has no {kind} after {API_SECONDS:.0f} s: no {where} of it") from None
            for one in every:
                containers = one["spec"]["template"]["spec"]["containers"]
                if without_cpu_requests(containers):
                    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
                    self._api.merge(f"{path}/{one['metadata']['name']}", patch)

    def saver(self, reference: str) -> Callable[[], None]:
        """The step that makes an image's archive."""

        def save() -> None:
            self._archives[reference] = self._images.archive(reference)

        return save

    def loader(self, reference: str, nodes: Sequence[str]) -> Callable[[], None]:
        """The step that loads an archive into the nodes that run its image, and no others."""
        return lambda: self._images.load(reference, self._archives[reference], self._driver, nodes)

    @property
    def _api(self) -> Api:
        if self._client is None:
            self._client = Api(load_access(self._kubeconfig))
        return self._client

    def _answers(self) -> bool:
        try:
            plain_kubeconfig(self._driver.early_kubeconfig(), self._kubeconfig)
        except (CommandFailed, CommandSlow):
            return False  # no container yet, or nothing in it, or too much to do
        try:
            api = Api(load_access(self._kubeconfig))
            # Ready is not enough: kubeadm gives the administrator rights only once it has seen that itself.
            return api.text("/readyz", seconds=2) == "ok" and api.exists(_RIGHTS)
        except ClusterError:
            return False

    def _until_served(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SERVED_SECONDS
        while not reached():
            self._look()
            if time.monotonic() > deadline:
                raise ClusterError(f"custom kinds of {self._name} are not served after {SERVED_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)


def _but_proxy(found: Objects) -> list[dict[str, Any]] | None:
    return [one for name, one in found.items() if name != "kube-proxy"] or None


def without_cpu_requests(containers: Sequence[dict[str, Any]]) -> bool:
    """Takes what containers ask of CPU away; returns whether there was any. What they may use at most stays."""
    changed = False
    for container in containers:
        requests = container.get("resources", {}).get("requests", {})
        if "cpu" in requests:
            requests["cpu"] = "0"  # not without: a limit would become the request
            changed = True
    return changed


def plain_kubeconfig(text: str, path: Path) -> None:
    """Writes a kubeconfig of kind's again with its data in files beside it, which is read without the official client.

    Raises:
        ClusterError: it is none of kind's.
    """
    try:
        document = yaml.safe_load(text)
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        data = {
            "admin-ca.crt": cluster["certificate-authority-data"],
            "admin.crt": user["client-certificate-data"],
            "admin.key": user["client-key-data"],
        }
        server = cluster["server"]
    except (yaml.YAMLError, KeyError, TypeError, IndexError) as error:
        raise ClusterError(f"expected a kubeconfig of kind, got one without {error!r}") from error
    for name, encoded in data.items():
        write_secret(path.with_name(name), base64.b64decode(encoded).decode())
    ca, certificate, key = (path.with_name(name) for name in data)
    write_kubeconfig(path, server, ca, certificate=certificate, key=key)
