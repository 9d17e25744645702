"""From a pair of versions to everything that a cluster of them consists of: binaries, CRDs, components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raykueue.clusters.protocol import ComponentSpec, Manifest, Process, Seat
from raykueue.controllers import kuberay, kueue
from raykueue.controllers.rendered import Rendered, render
from raykueue.controllers.settings import DEFAULT, Settings
from raykueue.model.versions import Pair, Versions
from raykueue.ray.simulated.component import CONFIG_NAME, SOCKET_NAME, ray_process
from raykueue.toolchain.builder import Toolchain

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
CONTROLLERS = ("kueue", "kuberay")


@dataclass(frozen=True, slots=True)
class Assembly:
    """Everything that a cluster of one pair consists of."""

    pair: Pair
    lock_digest: str
    cache: Path
    binaries: Mapping[str, Path]
    kwok_sources: Path
    _rendered: Mapping[str, Rendered]
    _keys: kueue.WebhookKeys

    def crds(self) -> list[Manifest]:
        """Of both products."""
        kueues = [kueue.trusting(crd, self._keys) for crd in kueue.crds(self._rendered["kueue"])]
        return [*kueues, *kuberay.crds(self._rendered["kuberay"])]

    def components(self, settings: Settings = DEFAULT) -> list[ComponentSpec]:
        """Kueue, KubeRay and the simulated Ray."""
        return [*self.controllers(settings), simulated_ray()]

    def controllers(self, settings: Settings = DEFAULT) -> Sequence[ComponentSpec]:
        """Kueue and KubeRay with these settings."""
        rendered, binaries = self._rendered, self.binaries
        return [
            kueue.component(binaries["kueue"], self.pair.kueue, rendered["kueue"], self._keys, settings),
            kuberay.component(binaries["kuberay"], rendered["kuberay"], settings),
        ]


def assemble(toolchain: Toolchain, versions: Versions, pair: Pair) -> Assembly:
    """Builds what is not built yet, and renders what the products ship.

    Raises:
        ToolchainError: something can't be built, or is not what was pinned.
    """
    toolchain.ensure(pair)
    kustomize = toolchain.binary("kustomize", pair)
    cache = toolchain.store.root
    rendered = {product: render(product, kustomize, toolchain.sources(product, pair), cache) for product in CONTROLLERS}
    return Assembly(
        pair=pair,
        lock_digest=versions.digest(pair),
        cache=cache,
        binaries={name: toolchain.binary(name, pair) for name in (*CONTROL_PLANE, *CONTROLLERS)},
        kwok_sources=toolchain.sources("kwok", pair),
        _rendered=rendered,
        _keys=kueue.WebhookKeys(cache / "kueue-webhook-keys"),
    )


def simulated_ray() -> ComponentSpec:
    """Answers for every head's dashboard, and ends submitter pods."""

    def process(seat: Seat) -> Process:
        port = seat.port(kuberay.DASHBOARD_PORT)
        about = ray_process(seat.folder, seat.kubeconfig, port)
        return Process(
            argv=about.argv,
            files={CONFIG_NAME: about.config.text()},
            ready_url=f"http://127.0.0.1:{port}/api/gcs_healthz",
        )

    return ComponentSpec(name="ray", account=None, process=process, early=True)


def ray_socket(folder: Path) -> Path:
    """The control socket of the simulated Ray, in its component's folder."""
    return folder / SOCKET_NAME
