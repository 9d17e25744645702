"""Kubeconfigs for one cluster on loopback, each with one context."""

from __future__ import annotations

from pathlib import Path

import yaml

from raykueue.clusters.pki import write_secret


def write_kubeconfig(
    path: Path, server: str, ca: Path, *, token: str = "", certificate: Path | None = None, key: Path | None = None
) -> None:
    """Writes a kubeconfig that only its owner can read. The identity is a token, or a certificate with its key."""
    user = {"token": token} if token else {"client-certificate": str(certificate), "client-key": str(key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "raykueue", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "raykueue", "user": user}],
        "contexts": [{"name": "raykueue", "context": {"cluster": "raykueue", "user": "raykueue"}}],
        "current-context": "raykueue",
    }
    write_secret(path, yaml.safe_dump(document))
