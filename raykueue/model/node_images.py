"""What the nodes of a kind cluster are made from, and which Kubernetes that is. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from raykueue.model.images import Reference
from raykueue.model.versions import Pair, Versions

NODE_IMAGE = "node image"
"""What the image is called among the versions of a report."""
_OWN = "raykueue.local/node"
"""Repository of the images that ci/airgap builds from the pinned modules. No registry has this name."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of one kind cluster, and what was pinned for them."""

    image: str
    pinned: str
    """The upstream image in versions.toml; empty if none is recorded for the pair's Kubernetes."""
    own: str
    """The one that is built here from what is pinned, where there is no container registry."""
    pair: Pair
    """As it was asked for."""

    @classmethod
    def of(cls, versions: Versions, pair: Pair, image: str | None) -> Nodes:
        """Made from `image`, or else from the pinned one.

        Raises:
            UsageError: neither is there.
        """
        pinned = versions.node_images.get(pair.kubernetes, "")
        return cls(image or versions.node_image(pair), pinned, own_image(pair.kubernetes), pair)

    @property
    def as_pinned(self) -> bool:
        """It is the pinned image, by digest wherever it was pulled from, or our own one for the pair's Kubernetes.

        A tag alone is not believed of kind's: it publishes one for each of its releases under the same tag. Of our own
        it is, since that comes from no registry, and whoever made it has what it was made from.
        """
        digest = Reference.parse(self.image).digest
        return self.image == self.own or bool(digest and digest == Reference.parse(self.pinned).digest)

    @property
    def kubernetes(self) -> str:
        """The version that its tag says, else the one that was asked for."""
        return kubernetes_of(self.image) or self.wanted

    @property
    def wanted(self) -> str:
        """The version that what was pinned has."""
        return self.pair.kubernetes if self.image == self.own else kubernetes_of(self.pinned) or self.pair.kubernetes


def own_image(kubernetes: str) -> str:
    """The name of the image that ci/airgap builds with this version."""
    return f"{_OWN}:v{kubernetes}"


def kubernetes_of(image: str) -> str:
    """The version of Kubernetes that a node image has by its tag (`kindest/node:v1.34.11@sha256:…`); empty if none.

    kind publishes images for some patch releases only, so it may be another one than the pair names.
    """
    found = re.search(r":v(\d+\.\d+\.\d+)(?:@|$)", image)
    return found[1] if found else ""
