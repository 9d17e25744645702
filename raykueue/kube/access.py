"""How to reach an API server: address, trust and identity, read from one kubeconfig that the caller names."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from raykueue.errors import ClusterError

_PLAIN_CLUSTER = {"server", "certificate-authority"}
_PROXIES = ("http://", "https://")
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
    verify: bool = True
    """False: whoever answers there is trusted, since the kubeconfig says `insecure-skip-tls-verify`."""
    server_name: str = ""
    """What the server's certificate must say, if not the host's name (`tls-server-name`)."""
    proxy: str = ""
    """http://proxy:3128, through which the server is reached (`proxy-url`)."""
    renewed: Callable[[], str] | None = field(default=None, compare=False)
    """The token as it is now: whoever gave it, a plugin above all, may have given it for minutes only."""

    def ssl_context(self) -> ssl.SSLContext:
        """For aiohttp and asyncio clients."""
        context = ssl.create_default_context(cafile=self.ca_file or None)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert_file:
            context.load_cert_chain(self.cert_file, self.key_file or None)
        return context

    def headers(self) -> dict[str, str]:
        """The bearer token, if the identity is one; ask for each request, since it may be renewed meanwhile."""
        token = self.renewed() if self.renewed is not None else self.token
        return {"Authorization": f"Bearer {token}"} if token else {}


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
        config.load_kube_config(  # type: ignore[no-untyped-call] # ships no types
            str(kubeconfig), context=context, client_configuration=configuration
        )
    except (config.ConfigException, OSError) as error:
        raise ClusterError(f"kubeconfig {kubeconfig}, context {context or '(current)'}: {error}") from error
    proxy = str(configuration.proxy or "")
    if proxy and not proxy.startswith(_PROXIES):
        raise ClusterError(
            f"kubeconfig {kubeconfig}, context {context or '(current)'}: proxy {proxy}: expected http:// or https://"
        )
    lock = threading.Lock()  # the client renews in place, and requests are made from several threads

    def token() -> str:
        with lock:
            key = configuration.get_api_key_with_prefix("authorization", alias="BearerToken") or ""
        return str(key).removeprefix("Bearer ")

    first = token()
    return Access(
        server=str(configuration.host).rstrip("/"),
        ca_file=str(configuration.ssl_ca_cert or ""),
        cert_file=str(configuration.cert_file or ""),
        key_file=str(configuration.key_file or ""),
        token=first,
        verify=bool(configuration.verify_ssl),
        server_name=str(configuration.tls_server_name or ""),
        proxy=proxy,
        renewed=token if first else None,
    )
