"""What somebody has installed in a cluster: Kueue and KubeRay, their versions and their Deployments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raykueue.clusters.protocol import ComponentSpec
from raykueue.errors import ClusterError
from raykueue.kube.client import Api, ApiError

_VERSION = re.compile(r"v?(\d+\.\d+\.\d+)\b")
_SERVED = {"kueue": "kueue.x-k8s.io", "kuberay": "ray.io"}
"""Product to the API group that is served where it is installed."""
_IMAGES = {
    "kueue": re.compile(r"(?:^|/)kueue[:@]"),
    "kuberay": re.compile(r"(?:^|/)(?:kuberay/operator|kuberay-operator)[:@]"),
}
"""Product to what the image of its controller is called, wherever it comes from."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What was found."""

    versions: Mapping[str, str]
    """{"kubernetes": "1.34.4", "kueue": "0.19.2", "kuberay": "1.6.2"}"""
    components: tuple[ComponentSpec, ...]
    """Kueue and KubeRay with the Deployments that are there, to read their logs and hear of their end."""


def look(api: Api) -> Installed:
    """Finds both products.

    Raises:
        ClusterError: one is not there, or does not say which version it is; or the user may not look.
    """
    kubernetes = _VERSION.search(str(api.get("/version").get("gitVersion", "")))
    if kubernetes is None:
        raise ClusterError(f"{api.server} does not say which Kubernetes it is")
    groups = {group["name"] for group in api.get("/apis")["groups"]}
    try:
        deployments = api.get("/apis/apps/v1/deployments")["items"]
    except ApiError as error:
        raise ClusterError(f"the controllers of {api.server} can't be looked for: {error}") from error
    versions = {"kubernetes": kubernetes[1]}
    components = []
    for product, group in _SERVED.items():
        if group not in groups:
            raise ClusterError(f"{api.server} serves no {group}: {product} is not there, and we install nothing there")
        found = [one for one in deployments if _IMAGES[product].search(_image(one))]
        if len(found) != 1:
            names = ", ".join(f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in found) or "none"
            raise ClusterError(f"{api.server}: expected one Deployment of {product}, found {names}")
        versions[product] = _version_of(product, found[0])
        deployment = {**found[0], "apiVersion": "apps/v1", "kind": "Deployment"}
        components.append(ComponentSpec(name=product, account=None, deployed=[deployment]))
    return Installed(versions, tuple(components))


def _version_of(product: str, deployment: Mapping[str, Any]) -> str:
    labels = deployment["metadata"].get("labels", {})
    tag = _image(deployment).split("@")[0].rpartition("/")[2].rpartition(":")[2]
    for text in (tag, labels.get("app.kubernetes.io/version", "")):
        if match := _VERSION.search(text):
            return match[1]
    where = f"{deployment['metadata']['namespace']}/{deployment['metadata']['name']}"
    raise ClusterError(
        f"Deployment {where} does not say which {product} it is: neither its image {_image(deployment)} nor its label "
        "app.kubernetes.io/version has a version"
    )


def _image(deployment: Mapping[str, Any]) -> str:
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])
