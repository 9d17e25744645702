"""Two small products with just what the modules under test read, and a seat for their processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from raykueue.controllers.rendered import Rendered


def obj(kind: str, name: str, namespace: str = "", **about: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **about}


def binding(kind: str, name: str, role_kind: str, role: str, account: str) -> dict[str, Any]:
    return obj(
        kind,
        name,
        roleRef={"kind": role_kind, "name": role},
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": "system"}],
    )


def hook(name: str, *groups: str) -> dict[str, Any]:
    service = {"name": "kueue-webhook-service", "namespace": "kueue-system", "path": f"/{name}"}
    return {"name": name, "clientConfig": {"service": service}, "rules": [{"apiGroups": [group]} for group in groups]}


CONVERTED = {
    "strategy": "Webhook",
    "webhook": {"clientConfig": {"service": {"name": "kueue-webhook-service", "namespace": "kueue-system"}}},
}
CONFIG = {
    "health": {"healthProbeBindAddress": ":8081"},
    "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": False},
    "webhook": {"port": 9443},
    "leaderElection": {"leaderElect": True, "resourceName": "lock"},
    "integrations": {"frameworks": ["batch/job", "pod"], "labelKeysToCopy": ["a"]},
}


def kueue() -> Rendered:
    """Kueue as it could be shipped."""
    account = "kueue-controller-manager"
    return Rendered(
        "kueue",
        [
            obj("Namespace", "kueue-system"),
            obj("CustomResourceDefinition", "workloads.kueue.x-k8s.io", spec={"conversion": CONVERTED}),
            obj("CustomResourceDefinition", "topologies.kueue.x-k8s.io", spec={}),
            obj("CustomResourceDefinition", "provisioningrequestconfigs.kueue.x-k8s.io", spec={}),
            obj("ServiceAccount", account, "kueue-system"),
            obj("ServiceAccount", "somebody-else", "kueue-system"),
            obj("Role", "leader", "kueue-system"),
            obj("Role", "unbound", "kueue-system"),
            obj("ClusterRole", "manager"),
            obj("ClusterRole", "editor"),
            obj("ClusterRole", "leader"),
            binding("RoleBinding", "leader", "Role", "leader", account),
            binding("ClusterRoleBinding", "manager", "ClusterRole", "manager", account),
            binding("ClusterRoleBinding", "editor", "ClusterRole", "editor", "somebody-else"),
            binding("RoleBinding", "reader", "Role", "not-shipped-here", account),
            obj("Secret", "kueue-webhook-server-cert", "kueue-system"),
            obj("ConfigMap", "kueue-manager-config", data={"controller_manager_config.yaml": yaml.safe_dump(CONFIG)}),
            obj(
                "MutatingWebhookConfiguration",
                "mutating",
                webhooks=[hook("mrayjob", "ray.io"), hook("mpod", ""), hook("mdeployment", "apps")],
            ),
            obj(
                "ValidatingWebhookConfiguration",
                "validating",
                webhooks=[hook("vworkload", "kueue.x-k8s.io"), hook("vboth", "batch", "jobset.x-k8s.io")],
            ),
        ],
    )


def kuberay(*args: str) -> Rendered:
    """KubeRay as it could be shipped, its operator with these arguments."""
    account = "kuberay-operator"
    pod = {"spec": {"containers": [{"name": "operator", **({"args": list(args)} if args else {})}]}}
    return Rendered(
        "kuberay",
        [
            obj("CustomResourceDefinition", "rayjobs.ray.io", spec={}),
            obj("CustomResourceDefinition", "raycronjobs.ray.io", spec={}),
            obj("ServiceAccount", account, "system"),
            obj("ClusterRole", account),
            binding("ClusterRoleBinding", account, "ClusterRole", account, account),
            obj("Deployment", account, "system", spec={"template": pod}),
        ],
    )


@dataclass
class Seat:
    """Gives out ports from 1 on."""

    folder: Path = Path("/seat")
    kubeconfig: Path = Path("/seat/kubeconfig")
    ports: dict[str, int] = field(default_factory=dict)
    can_mount: bool = True

    def port(self, purpose: str) -> int:
        return self.ports.setdefault(purpose, len(self.ports) + 1)

    def service_port(self, namespace: str, name: str) -> int:
        return self.port(f"service {namespace}/{name}")
