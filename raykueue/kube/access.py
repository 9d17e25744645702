"""How to reach an API server: address, trust and identity, read from one kubeconfig that the caller names."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from raykueue.errors import ClusterError

_PLAIN_CLUSTER = {"server", "certificate-authority"}
_PLAIN_USER = {"token", "client-certificate", "client-key"}


@dataclass(frozen=True, slots=True)
class Access:
    """Everything that a client needs, resolved: no kubeconfig is looked up anywhere else."""

    server: str
    """https://127.0.0.1:12345"""
    ca_file: str
    cert_file: str = ""
    key_file: str = ""
    token: str = ""

    def ssl_context(self) -> ssl.SSLContext:
        """For aiohttp and asyncio clients."""
        context = ssl.create_default_context(cafile=self.ca_file or None)
        if self.cert_file:
            context.load_cert_chain(self.cert_file, self.key_file or None)
        return context

    def headers(self) -> dict[str, str]:
        """The bearer token, if the identity is one."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def load_access(kubeconfig: Path, context: str | None = None) -> Access:
    """Reads one kubeconfig.

    Whatever has more to it than files and a token (exec plugins, auth providers, inlined data) is read by the official
    client, which knows them all; importing it takes half a second, which a process of ours does without.

    Raises:
        ClusterError: the file or the context does not exist, or can't be understood.
    """
    try:
        document = yaml.safe_load(kubeconfig.read_text())
        plain = _plain(document, context, kubeconfig.parent)
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ClusterError(f"kubeconfig {kubeconfig}, context {context or '(current)'}: {error!r}") from error
    return plain or _by_official_client(kubeconfig, context)


def _plain(document: dict[str, Any], name: str | None, folder: Path) -> Access | None:
    context = _named(document["contexts"], name or document["current-context"])["context"]
    cluster = _named(document["clusters"], context["cluster"])["cluster"]
    user = _named(document["users"], context["user"])["user"]
    if not (cluster.keys() <= _PLAIN_CLUSTER and user.keys() <= _PLAIN_USER):
        return None

    def file(path: str) -> str:  # relative ones are meant from the kubeconfig's folder
        return str(folder.absolute() / path) if path else ""

    return Access(
        server=cluster["server"].rstrip("/"),
        ca_file=file(cluster.get("certificate-authority", "")),
        cert_file=file(user.get("client-certificate", "")),
        key_file=file(user.get("client-key", "")),
        token=user.get("token", ""),
    )


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for entry in entries:
        if entry["name"] == name:
            return entry
    raise KeyError(f"{name} is not among {sorted(entry['name'] for entry in entries)}")


def _by_official_client(kubeconfig: Path, context: str | None) -> Access:
    from kubernetes import client, config

    configuration = client.Configuration()
    try:
        config.load_kube_config(  # type: ignore[no-untyped-call]
            str(kubeconfig), context=context, client_configuration=configuration
        )
    except (config.ConfigException, OSError) as error:
        raise ClusterError(f"kubeconfig {kubeconfig}, context {context or '(current)'}: {error}") from error
    token = str(configuration.api_key.get("authorization", "") or configuration.api_key.get("BearerToken", ""))
    return Access(
        server=str(configuration.host).rstrip("/"),
        ca_file=str(configuration.ssl_ca_cert or ""),
        cert_file=str(configuration.cert_file or ""),
        key_file=str(configuration.key_file or ""),
        token=token.removeprefix("Bearer "),
    )
