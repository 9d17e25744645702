"""Everything that the air-gapped path makes for one pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci.airgap import debian, kubernetes, node, operators, ray
from ci.airgap.daemon import PROBE, Helpers
from ci.airgap.images import Image
from ci.airgap.kubernetes import single
from ci.airgap.programs import program
from ci.airgap.workshop import Part, Workshop

PROGRAMS = (
    *("kind", "kubectl", "kubeadm", "kubelet", "kube-proxy", "crictl", "kind-sources"),
    *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    *("kueue", "kuberay", "kustomize", "kueue-sources", "kuberay-sources"),
)
"""What comes from the toolchain."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The images for a Docker daemon, and what the private daemon itself needs."""

    node: Image
    ray: Image
    operators: Sequence[Image]
    probe: Image
    proxy: Part
    shim: Part
    nonames: Part

    @property
    def images(self) -> list[Image]:
        """All that the daemon has to know."""
        return [self.probe, self.node, *self.operators, self.ray]

    def parts(self) -> list[Part]:
        """All that has to be made, the quick and the widely needed first."""
        return [self.proxy, self.shim, self.nonames, *(layer for image in self.images for layer in image.layers)]

    def helpers(self, shop: Workshop) -> Helpers:
        """The private daemon's helpers, once they are made."""
        return Helpers(shop.path(self.proxy), shop.path(self.shim), shop.path(self.nonames))


def catalog(shop: Workshop) -> Catalog:
    """Says what there is to make for the workshop's pair; what the toolchain builds is built now if it is missing.

    Raises:
        ToolchainError: a binary can't be built, or the pinned versions don't fit together.
    """
    paths = shop.toolchain.ensure(shop.pair, PROGRAMS)
    base = debian.base()
    control_plane = kubernetes.images(shop, paths, base)
    return Catalog(
        node=node.image(shop, paths, base, control_plane),
        ray=ray.image(shop.versions.ray_version(shop.pair), base),
        operators=list(operators.images(shop, paths).values()),
        probe=single(shop, "pause", PROBE),
        proxy=program("portproxy", shop.versions, shop.pair),
        shim=program("ocishim", shop.versions, shop.pair),
        nonames=program("nonames", shop.versions, shop.pair),
    )
