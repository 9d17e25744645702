"""The shape of a kind cluster: nodes, their labels, and what they claim to have."""

from __future__ import annotations

from typing import Any

import yaml

WORKERS = 2
WORKER_LABEL = "raykueue.dev/worker"
"""Its value is the worker's number, from 1 on: by it a flavor leads to one worker."""
GPUS = "8"
"""Of each worker, in nvidia.com/gpu: a number in its status and nothing else."""
WHOLE_LOG = "100Mi"
"""At which a kubelet begins a new file of a container's log; 10Mi by default. The API serves the newest file only, but
what a controller says at its start must be there also when a later run asks for it."""


def config(name: str) -> str:
    """The configuration file of a cluster: one control plane, two workers, everything on loopback, IPv4 only."""
    document = {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": name,
        "networking": {"ipFamily": "ipv4", "apiServerAddress": "127.0.0.1"},
        "kubeadmConfigPatches": [
            yaml.safe_dump({"kind": "KubeletConfiguration", "containerLogMaxSize": WHOLE_LOG}, sort_keys=False)
        ],
        "nodes": [
            {"role": "control-plane"},
            *({"role": "worker", "labels": {WORKER_LABEL: str(number)}} for number in range(1, WORKERS + 1)),
        ],
    }
    return str(yaml.safe_dump(document, sort_keys=False))


def control_plane(name: str) -> str:
    """The node that runs the control plane and the controllers, by the name that kind gives it."""
    return f"{name}-control-plane"


def workers(name: str) -> list[str]:
    """The nodes that run pods of ours, by the names that kind gives them."""
    return [f"{name}-worker{'' if number == 1 else number}" for number in range(1, WORKERS + 1)]


def fake_gpus() -> dict[str, Any]:
    """What is patched into a worker's status; its kubelet leaves an extended resource as it is."""
    return {"status": {"capacity": {"nvidia.com/gpu": GPUS}, "allocatable": {"nvidia.com/gpu": GPUS}}}
