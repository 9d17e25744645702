"""One scope's own names for what has none of its own: objects without a namespace, and the namespace. Reversible.

A manifest stays as a user would write it (`cluster-queue`, `default`, `prod-priority`); each test gets its own objects
from it, so tests run side by side. Only names change, never anything that Kueue or KubeRay decide by.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

OWN_KINDS = frozenset({"AdmissionCheck", "ClusterQueue", "Cohort", "ResourceFlavor", "WorkloadPriorityClass"})
"""Kinds without a namespace whose objects a scope makes for itself."""

PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
SCOPE_LABEL = "raykueue.dev/scope"
NODE_LABEL = "raykueue.dev/node"
"""Makes a node a scope's own: label and taint of it, with its name as the value, and of flavors that lead there."""
_HOSTNAME = "kubernetes.io/hostname"


class Names:
    """The names of one scope."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.namespace = f"raykueue-{scope}"
        self._real: dict[tuple[str, str], str] = {}

    def real(self, kind: str, name: str) -> str:
        """This scope's name for an object that a manifest calls `name`."""
        return self._real.setdefault((kind, name), f"{name}-{self.scope}")

    def of(self, kind: str) -> tuple[str, ...]:
        """All real names of one kind, in order of first use."""
        return tuple(real for (known, _), real in self._real.items() if known == kind)

    def table(self) -> dict[str, str]:
        """{"ClusterQueue cluster-queue": "cluster-queue-1a2b3c", …}, for the record."""
        return {f"{kind} {name}": real for (kind, name), real in self._real.items()}

    def rename(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of the manifest with this scope's names in it, and its label on it."""
        changed = copy.deepcopy(dict(manifest))
        kind, metadata = str(changed["kind"]), changed.setdefault("metadata", {})
        metadata.setdefault("labels", {})[SCOPE_LABEL] = self.scope
        if kind in OWN_KINDS or NODE_LABEL in metadata["labels"]:
            metadata["name"] = self.real(kind, metadata["name"])
        elif kind != "Node":
            metadata["namespace"] = self.namespace
        self._rename_references(kind, changed)
        return changed

    def _rename_references(self, kind: str, changed: dict[str, Any]) -> None:
        labels = changed["metadata"]["labels"]
        if PRIORITY_LABEL in labels:
            labels[PRIORITY_LABEL] = self.real("WorkloadPriorityClass", labels[PRIORITY_LABEL])
        spec = changed.get("spec") or {}
        match kind:
            case "LocalQueue":
                spec["clusterQueue"] = self.real("ClusterQueue", spec["clusterQueue"])
            case "ClusterQueue" | "Cohort":
                for field in ("cohort", "cohortName", "parent", "parentName"):
                    if spec.get(field):
                        spec[field] = self.real("Cohort", spec[field])
                for group in spec.get("resourceGroups", ()):
                    for flavor in group["flavors"]:
                        flavor["name"] = self.real("ResourceFlavor", flavor["name"])
                if spec.get("admissionChecks"):  # v1beta1 only
                    spec["admissionChecks"] = [self.real("AdmissionCheck", name) for name in spec["admissionChecks"]]
                for check in (spec.get("admissionChecksStrategy") or {}).get("admissionChecks", ()):
                    check["name"] = self.real("AdmissionCheck", check["name"])
                    if check.get("onFlavors"):
                        check["onFlavors"] = [self.real("ResourceFlavor", name) for name in check["onFlavors"]]
            case "Node" if NODE_LABEL in labels:
                self._rename_nodes(labels, spec.get("taints", ()))
            case "ResourceFlavor":
                self._rename_nodes(
                    spec.get("nodeLabels", {}), [*spec.get("nodeTaints", ()), *spec.get("tolerations", ())]
                )
            case _:
                pass

    def _rename_nodes(self, labels: dict[str, str], taints: Sequence[dict[str, str]]) -> None:
        for key in (NODE_LABEL, _HOSTNAME):
            if key in labels:
                labels[key] = self.real("Node", labels[key])
        for taint in taints:
            if taint.get("key") == NODE_LABEL and "value" in taint:
                taint["value"] = self.real("Node", taint["value"])
