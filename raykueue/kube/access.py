"""How to reach an API server: address, trust and identity, read from one kubeconfig that the caller names."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from raykueue.errors import ClusterError


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
    """Reads one kubeconfig with the official client, which knows exec plugins and auth providers.

    Raises:
        ClusterError: the file or the context does not exist, or can't be understood.
    """
    from kubernetes import client, config  # half a second of imports: only where a cluster is really used

    configuration = client.Configuration()
    try:
        config.load_kube_config(str(kubeconfig), context=context, client_configuration=configuration)
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
