"""Webhooks without a cluster network: what calls a Service in the shipped manifests calls loopback here."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

PortOf = Callable[[str, str], int]
"""(namespace, name) of a Service to the port on 127.0.0.1 that stands for it."""


def call_loopback(manifest: Mapping[str, Any], port_of: PortOf) -> dict[str, Any]:
    """A copy of a webhook configuration or CRD in which every `clientConfig.service` is a loopback URL.

    Nothing else changes: names, rules, selectors and failure policies stay as shipped.
    """
    changed = copy.deepcopy(dict(manifest))
    for config in _client_configs(changed):
        service = config.pop("service", None)
        if service is not None:
            port = port_of(service["namespace"], service["name"])
            config["url"] = f"https://127.0.0.1:{port}{service.get('path', '/')}"
    return changed


def trust(manifest: Mapping[str, Any], authority_pem_base64: str) -> dict[str, Any]:
    """A copy in which every `clientConfig` trusts this authority."""
    changed = copy.deepcopy(dict(manifest))
    for config in _client_configs(changed):
        config["caBundle"] = authority_pem_base64
    return changed


def _client_configs(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    found = [hook["clientConfig"] for hook in manifest.get("webhooks", [])]
    conversion = (
        manifest.get("spec", {}).get("conversion", {}) if manifest["kind"] == "CustomResourceDefinition" else {}
    )
    if "webhook" in conversion:
        found.append(conversion["webhook"].setdefault("clientConfig", {}))
    return found
