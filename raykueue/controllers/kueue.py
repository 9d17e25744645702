"""Kueue: the manager of the pinned module, as shipped, with the suite's configuration.

Its certificates are given to it as files, as with cert-manager. For those of its metrics it insists on
/etc/kueue/metrics/certs (cmd/kueue/main.go:216-234@v0.19.2), where only root may write: it gets an /etc of its own
where a process can have one. Elsewhere it manages certificates itself, as it ships (`internalCertManagement`); its
rotation takes a Secret that already holds a good pair as it is, so the Secret is made beforehand with 127.0.0.1 among
its names, and what a kubelet would mount is written beside it. That costs the API server the validation of five large
CRDs, seconds of a start.
"""

from __future__ import annotations

import base64
import datetime
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import filelock
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from raykueue.clusters.pki import Authority, key_pem, write_secret
from raykueue.clusters.protocol import ComponentSpec, Manifest, Process, Seat, ServiceAccount
from raykueue.clusters.services import trust
from raykueue.controllers.rendered import Rendered, without
from raykueue.controllers.settings import DEFAULT, Settings, gates_flag, merged
from raykueue.errors import ClusterError
from raykueue.model.gates import gate

NAMESPACE = "kueue-system"
ACCOUNT = "kueue-controller-manager"
_KEYS = ("ca.crt", "ca.key", "tls.crt", "tls.key")
_LEFT = datetime.timedelta(days=180 + 90)
"""What a certificate must still be good for: 180 days, the longest use of a saved state that contains it, and the last
90, in which Kueue's rotation would replace it."""
_LOCK_SECONDS = 60.0
"""Making keys takes another process less than a second."""
SERVICE = "kueue-webhook-service"

METRICS_CERTS = "/etc/kueue/metrics/certs"

FRAMEWORKS = ("batch/job", "ray.io/rayjob", "ray.io/raycluster")
"""What the suite's Kueue manages: the queued kind and what it owns. With `pod` and the rest, which newer versions ship
switched on, every pod of the cluster would pass a webhook; no test is about them."""

LEFT_OUT_CRDS = ("provisioningrequestconfigs.kueue.x-k8s.io",)
"""Kueue starts and admits without it; it costs a second of a cold start (docs/design.md)."""

_WEBHOOK_GROUPS = frozenset({"kueue.x-k8s.io", "ray.io", "batch"})
"""The rest belongs to frameworks that are off, or to kinds that nobody installed."""


def crds(rendered: Rendered) -> list[Manifest]:
    """Kueue's CRDs, with their conversion webhooks."""
    return without(rendered.of("CustomResourceDefinition"), LEFT_OUT_CRDS)


class WebhookKeys:
    """The certificate authority and the serving pair of Kueue's webhooks, kept in one folder of the cache.

    They are part of a saved state's digest, so with new ones, once the old are near their end, states are made anew.
    """

    def __init__(self, folder: Path) -> None:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with filelock.FileLock(folder.with_name(f"{folder.name}.lock"), timeout=_LOCK_SECONDS):
                if not _usable(folder):
                    _write_keys(folder)
                self.files = {name: (folder / name).read_text() for name in _KEYS}
        except filelock.Timeout as error:
            raise ClusterError(
                f"another process has been making the keys in {folder} for {_LOCK_SECONDS:g} s"
            ) from error

    def secret_data(self) -> dict[str, str]:
        """As the data of a Secret."""
        return {name: base64.b64encode(text.encode()).decode() for name, text in self.files.items()}


def component(
    binary: Path, version: str, rendered: Rendered, keys: WebhookKeys, settings: Settings = DEFAULT
) -> ComponentSpec:
    """The manager, under its own account, with the shipped configuration and what `settings` changes in it."""
    shipped = rendered.one("ConfigMap", "manager-config")["data"]["controller_manager_config.yaml"]

    def process(seat: Seat) -> Process:
        health = seat.port("kueue health")
        local = {
            "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
            "metrics": {"bindAddress": f"127.0.0.1:{seat.port('kueue metrics')}"},
            "webhook": {
                "host": "127.0.0.1",
                "port": seat.service_port(NAMESPACE, SERVICE),
                "certDir": str(seat.folder / "certs"),
            },
            "leaderElection": {"leaderElect": False},
            **({"internalCertManagement": {"enable": False}} if seat.can_mount else {}),
        }
        config = merged(merged(suite_config(yaml.safe_load(shipped)), settings.kueue_config), local)
        gates = {**suite_gates(version), **settings.kueue_gates}
        files = {f"certs/{name}": text for name, text in keys.files.items()}
        return Process(
            argv=[
                str(binary),
                f"--config={seat.folder / 'config.yaml'}",
                f"--kubeconfig={seat.kubeconfig}",
                "--zap-log-level=2",
                *gates_flag(gates),
            ],
            env={"KUBECONFIG": str(seat.kubeconfig), "POD_NAMESPACE": NAMESPACE, "GOGC": "400"},
            files={**files, "config.yaml": json.dumps(config, indent=1)},
            mounts={METRICS_CERTS: "certs"} if seat.can_mount else {},
            ready_url=f"http://127.0.0.1:{health}/readyz",
        )

    return ComponentSpec(
        name="kueue",
        account=ServiceAccount(NAMESPACE, ACCOUNT),
        process=process,
        objects=objects(rendered, keys),
        webhooks=webhooks(rendered, keys),
    )


def objects(rendered: Rendered, keys: WebhookKeys) -> list[Manifest]:
    """Namespace and RBAC as shipped, and the Secret, which already holds good keys."""
    secret = dict(rendered.one("Secret", "webhook-server-cert"))
    secret["data"] = keys.secret_data()
    return [*rendered.of("Namespace"), *rendered.bound_rbac(ACCOUNT), secret]


def webhooks(rendered: Rendered, keys: WebhookKeys) -> list[Manifest]:
    """The webhook configurations, of what is installed, with the authority of these keys."""
    authority = keys.secret_data()["ca.crt"]
    return [
        trust(relevant(hook), authority)
        for hook in rendered.of("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    ]


def trusting(crd: Manifest, keys: WebhookKeys) -> Manifest:
    """A CRD whose conversion webhook trusts Kueue's authority."""
    return trust(crd, keys.secret_data()["ca.crt"])


def suite_config(shipped: dict[str, Any]) -> dict[str, Any]:
    """The shipped configuration with the frameworks that the suite is about."""
    return merged(shipped, {"integrations": {"frameworks": list(FRAMEWORKS)}})


def suite_gates(version: str) -> dict[str, bool]:
    """Feature gates that the suite sets, whatever a test asks for besides."""
    gates = {"VisibilityOnDemand": False}  # an aggregated API, which nothing here routes to
    if gate("wait-for-pods-ready-default").open_for({"kueue": version}):
        gates["DisableWaitForPodsReady"] = True  # a test that is about it says so
    return gates


def relevant(configuration: Manifest) -> Manifest:
    """A webhook configuration without the hooks of what nobody installed."""
    hooks = [
        hook
        for hook in configuration["webhooks"]
        if all(_WEBHOOK_GROUPS.issuperset(rule["apiGroups"]) for rule in hook["rules"])
    ]
    return {**configuration, "webhooks": hooks}


def _usable(folder: Path) -> bool:
    if not all((folder / name).exists() for name in _KEYS):
        return False
    ends = [x509.load_pem_x509_certificate((folder / name).read_bytes()).not_valid_after_utc for name in _KEYS[::2]]
    return min(ends) - datetime.datetime.now(datetime.UTC) > _LEFT


def _write_keys(folder: Path) -> None:
    # RSA, and a name for the authority, because Kueue's rotation checks its Secret for both
    # (github.com/open-policy-agent/cert-controller pkg/rotator, validCACert and buildArtifactsFromSecret).
    authority_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    authority = Authority("kueue-ca", names=("kueue-ca",), key=authority_key)
    names = (f"{SERVICE}.{NAMESPACE}.svc", f"{SERVICE}.{NAMESPACE}.svc.cluster.local", "127.0.0.1", "localhost")
    certificate, key = authority.issue(f"{SERVICE}.{NAMESPACE}.svc", names=names)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as partial:
        whole = Path(partial) / "keys"  # all of them or none: half old, half new they would fit no more
        whole.mkdir(mode=0o700)
        for name, text in zip(_KEYS, (authority.pem(), key_pem(authority_key), certificate, key), strict=True):
            write_secret(whole / name, text)
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)
