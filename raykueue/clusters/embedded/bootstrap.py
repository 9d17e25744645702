"""The two ways up: cold, with every object created anew, and from a saved state. Each is a graph of steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from raykueue.clusters.embedded import kwok
from raykueue.clusters.embedded.controlplane import Command, ControlPlane
from raykueue.clusters.embedded.etcd import Etcd
from raykueue.clusters.embedded.keeping import Keeping, tail
from raykueue.clusters.embedded.saved import SavedState
from raykueue.clusters.embedded.seats import POLL_SECONDS, READY_SECONDS, Components, clean_environment
from raykueue.clusters.graph import Step
from raykueue.clusters.kubeconfig import write_kubeconfig
from raykueue.clusters.pki import write_cluster_pki
from raykueue.clusters.protocol import Manifest, Manifests
from raykueue.clusters.services import call_loopback
from raykueue.errors import ClusterError
from raykueue.kube.access import load_access
from raykueue.kube.apply import create, ensure
from raykueue.kube.client import Api, ApiError
from raykueue.kube.crds import wait_served

_CRD_PREFIX = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
_WEBHOOK_PREFIXES = ("/registry/validatingwebhookconfigurations/", "/registry/mutatingwebhookconfigurations/")
_FORGOTTEN = ("/registry/leases/", "/registry/events/")
"""KWOK takes a node over only when the lease of the KWOK before it has run out, up to 40 s later: so no leases."""


class Bootstrap:
    """Brings up one cluster."""

    def __init__(
        self, plane: ControlPlane, keeping: Keeping, components: Components, kubeconfig: Path, stages: str
    ) -> None:
        self._plane = plane
        self._keeping = keeping
        self._components = components
        self._kubeconfig = kubeconfig
        self._stages = stages
        self._client: Api | None = None

    def cold(self, crds: Manifests) -> dict[str, Step]:
        """Keys, etcd, API server, CRDs, objects, controllers."""
        specs = self._components.specs.values()
        objects = [manifest for spec in specs for manifest in spec.objects]
        webhooks = [call_loopback(hook, self._components.service_port) for spec in specs for hook in spec.webhooks]
        local = [call_loopback(crd, self._components.service_port) for crd in crds]
        return {
            "keys": Step(lambda: write_cluster_pki(self._plane.folder / "pki")),
            "etcd": Step(self._start_etcd),
            "serving": Step(self._start_api, ["keys", "etcd"]),
            "api": Step(self._wait_api, ["serving"]),
            "crds": Step(lambda: self._establish(local), ["api"]),
            "objects": Step(lambda: ensure(self._api, [*objects, *kwok.nodes()]), ["api"]),
            "webhooks": Step(lambda: ensure(self._api, webhooks), ["api"]),
            **self._controllers(["crds", "objects", "webhooks"]),
        }

    def from_saved(self, state: SavedState) -> dict[str, Step]:
        """The same, on a copy of a saved etcd, with the ports in it made ours before anybody reads them."""
        return {
            "restore": Step(lambda: state.restore(self._plane.folder)),
            "etcd": Step(self._start_etcd, ["restore"]),
            "ports": Step(lambda: self._rewrite_ports(state), ["etcd"]),
            "serving": Step(self._start_api, ["ports"]),
            "api": Step(self._wait_api, ["serving"]),
            **self._controllers(["api"], early=["serving"]),
        }

    def _controllers(self, after: list[str], early: list[str] | None = None) -> dict[str, Step]:
        plane, config = self._plane, self._kubeconfig
        steps = {
            "scheduler": Step(lambda: self._run(plane.scheduler(config)), after),
            "controller-manager": Step(lambda: self._run(plane.controller_manager(config)), after),
            "kwok": Step(self._start_kwok, after),
        }
        for name, spec in self._components.specs.items():
            begin = early if early is not None and spec.early else after
            steps[name] = Step(self._starter(name), [*begin, *(f"{other} ready" for other in spec.after)])
            steps[f"{name} ready"] = Step(self._waiter(name), [name])
        steps["nodes ready"] = Step(self._wait_nodes, ["kwok"])
        return steps

    def _starter(self, name: str) -> Callable[[], None]:
        def start() -> None:
            # Until the API server has read its own roles it refuses everybody, and Kueue exits when it is refused.
            self._until("kube-apiserver", lambda: self._components.is_known(name, self._api, self._kubeconfig))
            self._components.start(name)

        return start

    def _waiter(self, name: str) -> Callable[[], None]:
        return lambda: self._components.wait_ready(name)

    @property
    def _api(self) -> Api:
        if self._client is None:
            self._client = Api(load_access(self._kubeconfig))
        return self._client

    def _run(self, command: Command) -> None:
        self._keeping.start(command.name, command.argv, clean_environment(command.env), self._plane.folder)

    def _start_etcd(self) -> None:
        self._run(self._plane.etcd())
        self._until("etcd", Etcd(self._plane.ports("etcd")).answers)

    def _rewrite_ports(self, state: SavedState) -> None:
        etcd = Etcd(self._plane.ports("etcd"))
        texts = {
            _address(port): _address(self._components.service_port(*service.split("/", 1)))
            for service, port in state.ports().items()
        }
        for prefix in (_CRD_PREFIX, *_WEBHOOK_PREFIXES):
            etcd.replace(prefix, texts)
        for prefix in _FORGOTTEN:
            etcd.delete(prefix)

    def _start_api(self) -> None:
        self._run(self._plane.apiserver())
        pki = self._plane.folder / "pki"
        server = f"https://127.0.0.1:{self._plane.ports('kube-apiserver')}"
        write_kubeconfig(self._kubeconfig, server, pki / "ca.crt", certificate=pki / "admin.crt", key=pki / "admin.key")
        api = self._api
        self._until("kube-apiserver", lambda: _answers(api))

    def _wait_api(self) -> None:
        api = self._api
        self._until("kube-apiserver", lambda: _is_ready(api))

    def _start_kwok(self) -> None:
        stages = self._plane.folder / "stages.yaml"
        stages.write_text(self._stages)
        self._run(self._plane.kwok(self._kubeconfig, stages))

    def _wait_nodes(self) -> None:
        def ready() -> bool:
            nodes = self._api.get("/api/v1/nodes")["items"]
            return bool(nodes) and all(_node_is_ready(node) for node in nodes)

        self._until("kwok", ready)

    def _establish(self, crds: Manifests) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda crd: create(self._api, crd), crds))
        wait_served(self._api, crds, lambda reached: self._until("kube-apiserver", reached))

    def _until(self, name: str, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not reached():
            self._keeping.check(name)
            if time.monotonic() > deadline:
                log = tail(self._plane.folder / f"{name}.log")
                raise ClusterError(f"{name} was not ready after {READY_SECONDS:.0f} s; the end of its log:\n{log}")
            time.sleep(POLL_SECONDS)


def _address(port: int) -> bytes:
    return f"https://127.0.0.1:{port}/".encode()


def _answers(api: Api) -> bool:
    try:
        api.text("/livez", seconds=2)
    except ApiError:
        return True
    except ClusterError:
        return False
    return True


def _is_ready(api: Api) -> bool:
    try:
        return api.text("/readyz", seconds=2) == "ok"
    except ClusterError:
        return False


def _node_is_ready(node: Manifest) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return ready and not node.get("spec", {}).get("taints")
