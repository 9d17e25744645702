"""From a pair of versions to everything that a cluster of them consists of: binaries, CRDs, components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from raykueue.clusters.kind.ingredients import Ingredients
from raykueue.clusters.protocol import ComponentSpec, Manifest, Process, Seat
from raykueue.controllers import deployed, kuberay, kueue
from raykueue.controllers.rendered import Rendered, render
from raykueue.controllers.settings import DEFAULT, Settings
from raykueue.errors import UsageError
from raykueue.model.node_images import NODE_IMAGE, Nodes
from raykueue.model.versions import Pair, Versions
from raykueue.ray.manifests import REPOSITORY
from raykueue.ray.simulated.component import CONFIG_NAME, SOCKET_NAME, ray_process
from raykueue.toolchain.builder import Toolchain

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
CONTROLLERS = ("kueue", "kuberay")


class Assembly(Protocol):
    """Everything that a cluster of one pair consists of, for one kind of cluster."""

    @property
    def pair(self) -> Pair:
        """The versions."""
        ...

    @property
    def lock_digest(self) -> str:
        """Of all that determines what runs; empty where that is not ours to decide."""
        ...

    @property
    def made_with(self) -> Mapping[str, str]:
        """Versions of what goes with the pair on this kind of cluster; empty where that is not ours to decide."""
        ...

    @property
    def nodes(self) -> Nodes | None:
        """What its nodes are made from, where that is an image that we choose."""
        ...

    def crds(self) -> list[Manifest]:
        """Of both products."""
        ...

    def components(self) -> list[ComponentSpec]:
        """Everything beside the control plane, with the default settings."""
        ...

    def controllers(self, settings: Settings) -> Sequence[ComponentSpec]:
        """Kueue and KubeRay with these settings."""
        ...


@dataclass(frozen=True, slots=True)
class _Shipped:
    """What both products ship, rendered."""

    pair: Pair
    lock_digest: str
    made_with: Mapping[str, str]
    cache: Path
    rendered: Mapping[str, Rendered]
    keys: kueue.WebhookKeys

    def crds(self) -> list[Manifest]:
        """Of both products."""
        kueues = [kueue.trusting(crd, self.keys) for crd in kueue.crds(self.rendered["kueue"])]
        return [*kueues, *kuberay.crds(self.rendered["kuberay"])]


@dataclass(frozen=True, slots=True)
class EmbeddedAssembly(_Shipped):
    """Binaries: every component is a process."""

    binaries: Mapping[str, Path]
    kwok_sources: Path
    nodes: None = None

    def components(self) -> list[ComponentSpec]:
        """Kueue, KubeRay and the simulated Ray."""
        return [*self.controllers(DEFAULT), simulated_ray()]

    def controllers(self, settings: Settings) -> Sequence[ComponentSpec]:
        """Kueue and KubeRay with these settings."""
        return [
            kueue.component(self.binaries["kueue"], self.pair.kueue, self.rendered["kueue"], self.keys, settings),
            kuberay.component(self.binaries["kuberay"], self.rendered["kuberay"], settings),
        ]


@dataclass(frozen=True, slots=True)
class KindAssembly(_Shipped):
    """Images: every component is a Deployment."""

    ingredients: Ingredients
    nodes: Nodes
    kueue_image: str
    kuberay_image: str

    def components(self) -> list[ComponentSpec]:
        """Kueue and KubeRay; Ray is real."""
        return list(self.controllers(DEFAULT))

    def controllers(self, settings: Settings) -> Sequence[ComponentSpec]:
        """Kueue and KubeRay with these settings."""
        rendered = self.rendered
        return [
            deployed.kueue_component(self.kueue_image, self.pair.kueue, rendered["kueue"], self.keys, settings),
            deployed.kuberay_component(self.kuberay_image, rendered["kuberay"], settings),
        ]


@dataclass(frozen=True, slots=True)
class ExistingAssembly:
    """What somebody else has installed: nothing of it is ours."""

    pair: Pair
    lock_digest: str = ""
    made_with: Mapping[str, str] = field(default_factory=dict)
    nodes: None = None

    def crds(self) -> list[Manifest]:
        """None to install."""
        return []

    def components(self) -> list[ComponentSpec]:
        """None to install."""
        return []

    def controllers(self, settings: Settings) -> Sequence[ComponentSpec]:
        """None of ours, so the settings are as they are.

        Raises:
            UsageError: others than the default ones are asked for.
        """
        if settings != DEFAULT:
            raise UsageError(f"the controllers of an existing cluster keep their settings; asked for {settings.key()}")
        return []


def assemble(toolchain: Toolchain, versions: Versions, pair: Pair) -> EmbeddedAssembly:
    """Builds what an embedded cluster needs and is not built yet, and renders what the products ship.

    Raises:
        ToolchainError: something can't be built, or is not what was pinned.
    """
    toolchain.ensure(pair)
    return EmbeddedAssembly(
        pair=pair,
        lock_digest=versions.digest(pair),
        made_with=versions.companions,
        cache=toolchain.store.root,
        rendered=_rendered(toolchain, pair),
        keys=_keys(toolchain),
        binaries={name: toolchain.binary(name, pair) for name in (*CONTROL_PLANE, *CONTROLLERS)},
        kwok_sources=toolchain.sources("kwok", pair),
    )


def assemble_for_kind(toolchain: Toolchain, versions: Versions, pair: Pair, node_image: str | None) -> KindAssembly:
    """The same for a kind cluster, whose nodes are made from `node_image`, or else from the pinned one.

    Raises:
        ToolchainError: something can't be built, or is not what was pinned.
        UsageError: no node image, or no Ray, is recorded for the pair.
    """
    nodes = Nodes.of(versions, pair, node_image)
    ray = versions.ray_version(pair)
    tools = toolchain.ensure(pair, ["kind", "kubectl", "kustomize", "kueue-sources", "kuberay-sources"])
    ingredients = Ingredients(
        kind=tools["kind"],
        kubectl=tools["kubectl"],
        node_image=nodes.image,
        control_plane_images=(),
        worker_images=(f"{REPOSITORY}:{ray}",),
        archives=toolchain.store.root / "images",
    )
    bare = KindAssembly(
        pair=replace(pair, kubernetes=nodes.kubernetes),
        lock_digest=versions.digest(pair, "kind"),
        made_with={
            NODE_IMAGE: nodes.image,
            "ray": ray,
            **{product: versions.release_for(product, pair).version for product in ("kind", "kustomize")},
        },
        cache=toolchain.store.root,
        rendered=_rendered(toolchain, pair),
        keys=_keys(toolchain),
        ingredients=ingredients,
        nodes=nodes,
        kueue_image=versions.image("kueue", pair),
        kuberay_image=versions.image("kuberay", pair),
    )
    needed = dict.fromkeys(image for spec in bare.components() for image in spec.images.values())
    return replace(bare, ingredients=replace(ingredients, control_plane_images=tuple(needed)))


def _rendered(toolchain: Toolchain, pair: Pair) -> dict[str, Rendered]:
    kustomize = toolchain.binary("kustomize", pair)
    root = toolchain.store.root
    return {product: render(product, kustomize, toolchain.sources(product, pair), root) for product in CONTROLLERS}


def _keys(toolchain: Toolchain) -> kueue.WebhookKeys:
    return kueue.WebhookKeys(toolchain.store.root / "kueue-webhook-keys")


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
