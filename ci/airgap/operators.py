"""The operators' images, under the very names that kind clusters install them by, with the pair's versions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ci.airgap.images import Image
from ci.airgap.kubernetes import PATH, from_toolchain
from ci.airgap.layers import file_layer
from ci.airgap.workshop import Workshop
from raykueue.controllers.rendered import render

DEPLOYMENTS = {"kueue": "kueue-controller-manager", "kuberay": "kuberay-operator"}
"""product → how the name of its Deployment ends."""
USER = "65532:65532"
"""Both Deployments ask for a user that is not root, and leave it to the image which; it is their Dockerfiles' own."""


def images(shop: Workshop, paths: Mapping[str, Path]) -> dict[str, Image]:
    """product → image; `paths` are the toolchain's, with kustomize and the products' sources."""
    made = {}
    for product, deployment in DEPLOYMENTS.items():
        rendered = render(product, paths["kustomize"], paths[f"{product}-sources"], shop.store.root)
        container = rendered.one("Deployment", deployment)["spec"]["template"]["spec"]["containers"][0]
        command = str(container["command"][0])
        file = from_toolchain(shop, product, paths[product])
        layer = file_layer(f"image-{product}", {command: file})
        tag = shop.versions.release_for(product, shop.pair).tag
        run: Mapping[str, Any] = {"Entrypoint": [command], "Env": [PATH], "User": USER, "WorkingDir": "/"}
        published = shop.versions.image(product, shop.pair)
        made[product] = Image(published or reference(str(container["image"]), tag), (layer,), run)
    return made


def reference(named: str, tag: str) -> str:
    """The image of a manifest, with this tag: a module's own manifests may name a moving one."""
    repository, colon, last = named.rpartition(":")
    return f"{repository if colon and '/' not in last else named}:{tag}"
