"""Components as processes: the folder, identity and ports that each gets, and when it is ready."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from raykueue.clusters.embedded.keeping import Keeping, tail
from raykueue.clusters.embedded.mounts import can_mount, mounted
from raykueue.clusters.embedded.ports import Ports
from raykueue.clusters.kubeconfig import write_kubeconfig
from raykueue.clusters.pki import write_secret
from raykueue.clusters.protocol import ComponentSpec
from raykueue.errors import ClusterError
from raykueue.kube.access import load_access
from raykueue.kube.client import Api

READY_SECONDS = 60.0
"""A component that is not ready by then never will be: the slowest seen on a full machine took 9 s."""
POLL_SECONDS = 0.03
TOKEN_SECONDS = 7 * 86400

_OPENER = build_opener(ProxyHandler({}))
_SERVICE = "service "


@dataclass(frozen=True, slots=True)
class Seat:
    """Where one component is put."""

    folder: Path
    kubeconfig: Path
    ports: Ports

    @property
    def can_mount(self) -> bool:
        """Whether a process can be given files at a path that it insists on."""
        return can_mount()

    def port(self, purpose: str) -> int:
        """A free port, the same for the same purpose."""
        return self.ports(purpose)

    def service_port(self, namespace: str, name: str) -> int:
        """The port that stands for a Service."""
        return self.ports(f"{_SERVICE}{namespace}/{name}")


class Components:
    """The components of one cluster."""

    def __init__(self, folder: Path, ports: Ports, keeping: Keeping, specs: Sequence[ComponentSpec]) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self._folder = folder
        self._ports = ports
        self._keeping = keeping

    def folder_of(self, name: str) -> Path:
        """The component's own folder."""
        return self._folder / name

    def service_port(self, namespace: str, name: str) -> int:
        """The port that stands for a Service, whoever serves it."""
        return self._ports(f"{_SERVICE}{namespace}/{name}")

    def service_ports(self) -> dict[str, int]:
        """All ports that stand for Services, by `namespace/name`."""
        table = self._ports.table().items()
        return {purpose.removeprefix(_SERVICE): port for purpose, port in table if purpose.startswith(_SERVICE)}

    def give_identity(self, name: str, api: Api, admin: Path) -> None:
        """Writes the component's kubeconfig: a token of its own account, or the administrator's if it has none."""
        seat = self._seat(name)
        seat.folder.mkdir(mode=0o700, exist_ok=True)
        account = self.specs[name].account
        if account is None:
            write_secret(seat.kubeconfig, admin.read_text())
            return
        path = f"/api/v1/namespaces/{account.namespace}/serviceaccounts/{account.name}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        token = api.create(path, request)["status"]["token"]
        write_kubeconfig(seat.kubeconfig, api.server, self._folder / "pki" / "ca.crt", token=token)

    def is_known(self, name: str, api: Api, admin: Path) -> bool:
        """Gives the component its identity, and tells whether the API server lets it in yet."""
        try:
            self.give_identity(name, api, admin)
            Api(load_access(self._seat(name).kubeconfig)).get("/apis")
        except ClusterError:
            return False
        return True

    def start(self, name: str) -> None:
        """Writes the component's files and starts it."""
        seat = self._seat(name)
        process = self.specs[name].process(seat)
        for relative, text in process.files.items():
            path = seat.folder / relative
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_secret(path, text)
        folders = {target: seat.folder / folder for target, folder in process.mounts.items()}
        argv = mounted(process.argv, folders) if folders else process.argv
        self._keeping.start(name, argv, clean_environment(process.env), seat.folder)

    def wait_ready(self, name: str) -> None:
        """Returns once the component is ready.

        Raises:
            ComponentDied: it ended instead.
            ClusterError: it was not ready in time; both with its last lines of log.
        """
        url = self.specs[name].process(self._seat(name)).ready_url
        deadline = time.monotonic() + READY_SECONDS
        while url and not answers(url):
            self._keeping.check(name)
            if time.monotonic() > deadline:
                log = tail(self._folder / f"{name}.log")
                raise ClusterError(f"{name} was not ready after {READY_SECONDS:.0f} s; the end of its log:\n{log}")
            time.sleep(POLL_SECONDS)

    def _seat(self, name: str) -> Seat:
        folder = self.folder_of(name)
        return Seat(folder, folder / "kubeconfig", self._ports)


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Ours without whatever could send a component elsewhere: proxies, a kubeconfig of the user's."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.lower().endswith("_proxy") and not key.startswith(("KUBE", "RAYKUEUE_", "PYTEST"))
    }
    return kept | dict(extra)


def answers(url: str) -> bool:
    """Whether a GET on loopback is answered by 200."""
    try:
        with _OPENER.open(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError, HTTPException):
        return False
