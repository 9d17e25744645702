"""Creating whatever a manifest says, in the order in which one kind needs another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from raykueue.kube.client import Api, ApiError

_PLURALS: Mapping[str, str] = {
    "NetworkPolicy": "networkpolicies",
    "PriorityClass": "priorityclasses",
    "Topology": "topologies",
    "WorkloadPriorityClass": "workloadpriorityclasses",
}
_CLUSTER_SCOPED = frozenset(
    {
        "APIService",
        "AdmissionCheck",
        "ClusterQueue",
        "ClusterRole",
        "ClusterRoleBinding",
        "Cohort",
        "CustomResourceDefinition",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PriorityClass",
        "ResourceFlavor",
        "Topology",
        "ValidatingWebhookConfiguration",
        "WorkloadPriorityClass",
    }
)


def collection(manifest: Mapping[str, Any], namespace: str = "default") -> str:
    """The URL path that an object of this manifest is posted to."""
    version, kind = str(manifest["apiVersion"]), str(manifest["kind"])
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural = _PLURALS.get(kind, kind.lower() + "s")
    if kind in _CLUSTER_SCOPED:
        return f"{base}/{plural}"
    return f"{base}/namespaces/{manifest['metadata'].get('namespace', namespace)}/{plural}"


def location(manifest: Mapping[str, Any], namespace: str = "default") -> str:
    """The URL path of the object itself."""
    return f"{collection(manifest, namespace)}/{manifest['metadata']['name']}"


def create(api: Api, manifest: Mapping[str, Any], namespace: str = "default") -> dict[str, Any]:
    """Creates one object and returns what was stored."""
    return api.create(collection(manifest, namespace), manifest)


def ensure(api: Api, manifests: Iterable[Mapping[str, Any]], namespace: str = "default", workers: int = 8) -> None:
    """Creates every object that does not exist yet: namespaces first, the rest side by side."""
    rest: list[Mapping[str, Any]] = []
    for manifest in manifests:
        if manifest["kind"] == "Namespace":
            _create_once(api, manifest, namespace)
        else:
            rest.append(manifest)
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(lambda manifest: _create_once(api, manifest, namespace), rest):
            pass


def apply(api: Api, manifests: Iterable[Mapping[str, Any]], namespace: str = "default", workers: int = 8) -> None:
    """Applies every object, server-side: namespaces first, the rest side by side."""
    rest: list[Mapping[str, Any]] = []
    for manifest in manifests:
        if manifest["kind"] == "Namespace":
            api.apply(location(manifest, namespace), manifest)
        else:
            rest.append(manifest)
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda manifest: api.apply(location(manifest, namespace), manifest), rest))


def _create_once(api: Api, manifest: Mapping[str, Any], namespace: str) -> None:
    try:
        create(api, manifest, namespace)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
