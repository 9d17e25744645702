"""What a live cluster says of itself: its version, its CRDs, the programs that run, and the controllers' feature gates.

Nothing here is compared with anything; `raykueue.run.drift` does that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from raykueue.kube.client import Api
from raykueue.model.gates.signs import Seen
from raykueue.toolchain.buildinfo import Module, modules_of
from raykueue.toolchain.recipe import PROGRAMS

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SAYS_FEATURES = "Loaded feature gates"
"""What both controllers log at their start, Kueue at verbosity 2 (kueue pkg/features/kube_features.go:229@v0.10.1,
:1002@v0.19.2; kuberay ray-operator/pkg/features/features.go:55@v1.3.2, :89@v1.6.2)."""


@runtime_checkable
class Inspectable(Protocol):
    """What a backend offers whose components are processes of this machine."""

    def programs(self) -> dict[str, Path]:
        """Component → the program that runs as its process; of those that run."""
        ...

    def log_file(self, component: str) -> Path:
        """All that a component has logged."""
        ...


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

    @property
    def seen(self) -> Seen:
        """For the signs of gates."""
        return Seen(self.crds, self.features)


def detect(api: Api, cluster: object, controllers: Sequence[str]) -> Detected:
    """Asks a cluster that is up, and looks at its processes if it is `Inspectable`.

    Raises:
        ClusterError: the API server does not answer.
        ToolchainError: a program that runs does not say what it was built from.
    """
    here = cluster if isinstance(cluster, Inspectable) else None
    with ThreadPoolExecutor(1) as pool:
        built = pool.submit(_programs, here) if here is not None else None
        crds = {item["metadata"]["name"]: item["spec"] for item in api.get(_CRDS)["items"]}
        programs = None if built is None else built.result()
    said = {name: features_said(here.log_file(name)) for name in controllers} if here is not None else {}
    return Detected(
        kubernetes=str(api.get("/version").get("gitVersion")),
        crds=crds,
        programs=programs,
        features={name: features for name, features in said.items() if features is not None},
    )


def features_said(log: Path) -> dict[str, bool] | None:
    """The feature gates that a controller named at its last start; None if its log has none."""
    try:
        with log.open(encoding="utf-8", errors="replace") as lines:
            said = [line for line in lines if _SAYS_FEATURES in line]
    except OSError:
        return None
    for line in reversed(said):
        try:
            features = json.loads(line)["featureGates"]
        except (ValueError, KeyError, TypeError):
            continue
        if isinstance(features, dict):
            return {str(name): bool(on) for name, on in features.items()}
    return None


def _programs(cluster: Inspectable) -> dict[str, Mapping[str, Module]]:
    # The simulated Ray is our own: Python, and no release of anybody.
    return {name: modules_of(path) for name, path in cluster.programs().items() if name in PROGRAMS}
