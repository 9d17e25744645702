"""What a live cluster says of itself: versions, CRDs, webhooks, programs or images that run, feature gates that are on.

Nothing here is compared with anything; `raykueue.run.drift` does that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raykueue.clusters.protocol import Container, Inspectable
from raykueue.kube.client import Api, ApiError
from raykueue.model.gates.signs import Seen
from raykueue.toolchain.buildinfo import Module, modules_of
from raykueue.toolchain.recipe import PROGRAMS

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_FORBIDDEN = 403
_SAYS_FEATURES = "Loaded feature gates"
"""What both controllers log at their start, Kueue at verbosity 2 (kueue pkg/features/kube_features.go:229@v0.10.1,
:1002@v0.19.2; kuberay ray-operator/pkg/features/features.go:55@v1.3.2, :89@v1.6.2)."""


@dataclass(frozen=True, slots=True)
class Detected:
    """What was found."""

    kubernetes: str
    """As the API server says it: "v1.34.4"."""
    crds: Mapping[str, Mapping[str, Any]]
    """Name → spec."""
    programs: Mapping[str, Mapping[str, Module]] | None
    """Component → the modules that its running program was built from; None: they are no processes of this machine."""
    features: Mapping[str, Mapping[str, bool]]
    """Component → its feature gates, of those that said them."""
    containers: Mapping[str, Sequence[Container]] = field(default_factory=dict)
    """Component → the containers of its pods, of those that run in some."""
    kubelets: Mapping[str, str] = field(default_factory=dict)
    """Node → the version of its kubelet, of those that are real and ours."""
    webhooks: frozenset[str] | None = None
    """Names of the mutating ones; None: the cluster does not show them to us."""

    @property
    def seen(self) -> Seen:
        """For the signs of gates."""
        return Seen(self.crds, self.features, self.webhooks)


def detect(api: Api, cluster: Inspectable, controllers: Sequence[str]) -> Detected:
    """Asks a cluster that is up, its API server and what runs in it.

    Raises:
        ClusterError: the API server does not answer, or does not tell what it must.
        ToolchainError: a program that runs does not say what it was built from.
    """
    here = cluster.programs()
    with ThreadPoolExecutor(1) as pool:
        built = None if here is None else pool.submit(_built_from, here)
        crds = {item["metadata"]["name"]: item["spec"] for item in api.get(_CRDS)["items"]}
        programs = None if built is None else built.result()
    said = {name: features_said(cluster.first_words(name)) for name in controllers}
    return Detected(
        kubernetes=str(api.get("/version").get("gitVersion")),
        crds=crds,
        programs=programs,
        features={name: features for name, features in said.items() if features is not None},
        containers=cluster.containers(),
        kubelets=cluster.kubelets(),
        webhooks=_webhooks(api),
    )


def features_said(lines: Iterable[str]) -> dict[str, bool] | None:
    """The feature gates that a controller named at its last start; None if these lines of its log have none."""
    for line in reversed([line for line in lines if _SAYS_FEATURES in line]):
        try:
            features = json.loads(line)["featureGates"]
        except (ValueError, KeyError, TypeError):
            continue
        if isinstance(features, dict):
            return {str(name): bool(on) for name, on in features.items()}
    return None


def _webhooks(api: Api) -> frozenset[str] | None:
    try:
        items = api.get(_WEBHOOKS)["items"]
    except ApiError as error:
        if error.code != _FORBIDDEN:
            raise
        return None
    return frozenset(str(hook["name"]) for item in items for hook in item.get("webhooks") or ())


def _built_from(programs: Mapping[str, Path]) -> dict[str, Mapping[str, Module]]:
    # The simulated Ray is our own: Python, and no release of anybody.
    return {name: modules_of(path) for name, path in programs.items() if name in PROGRAMS}
