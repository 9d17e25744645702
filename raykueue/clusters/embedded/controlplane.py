"""Command lines of the control plane's own processes, each flag with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from raykueue.clusters.embedded.ports import Ports

CONTROLLERS = (
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",  # without it the not-ready taint of a new node never goes
    "pod-garbage-collector-controller",
    "serviceaccount-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
)
"""The controllers that RayJobs meet. The others keep both cores busy with what nobody reads (Endpoints and so on); that
there are fewer is a difference from a real cluster (docs/design.md)."""

_GO = {"GOGC": "400"}
"""A third less CPU for a start, for memory that a machine with 4 GiB still has."""


@dataclass(frozen=True, slots=True)
class Command:
    """A process of the control plane."""

    name: str
    argv: list[str]
    env: Mapping[str, str] = field(default_factory=lambda: dict(_GO))


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Everything the command lines depend on."""

    binaries: Mapping[str, Path]
    folder: Path
    ports: Ports

    def etcd(self) -> Command:
        """Serves clients and its own peer on loopback."""
        client = f"http://127.0.0.1:{self.ports('etcd')}"
        peer = f"http://127.0.0.1:{self.ports('etcd-peer')}"
        return Command(
            "etcd",
            [
                str(self.binaries["etcd"]),
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--unsafe-no-fsync",  # what a power cut would cost is a test cluster
                "--heartbeat-interval=10",
                "--election-timeout=100",  # it elects itself at once instead of after a second
                "--log-level=warn",
            ],
        )

    def apiserver(self) -> Command:
        """The one that everything else waits for."""
        pki = self.folder / "pki"
        return Command(
            "kube-apiserver",
            [
                str(self.binaries["kube-apiserver"]),
                f"--etcd-servers=http://127.0.0.1:{self.ports('etcd')}",
                f"--secure-port={self.ports('kube-apiserver')}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                "--endpoint-reconciler-type=none",
                f"--tls-cert-file={pki / 'api.crt'}",
                f"--tls-private-key-file={pki / 'api.key'}",
                f"--client-ca-file={pki / 'ca.crt'}",
                f"--service-account-key-file={pki / 'sa.pub'}",
                f"--service-account-signing-key-file={pki / 'sa.key'}",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--service-cluster-ip-range=10.96.0.0/16",  # addresses of Services, which nothing here routes
                "--authorization-mode=RBAC",
                "--allow-privileged=true",
                # Pods would wait for the default account of a namespace that a test has just made.
                "--disable-admission-plugins=ServiceAccount",
                "--profiling=false",
            ],
            {**_GO, "GOMEMLIMIT": "3GiB"},
        )

    def controller_manager(self, kubeconfig: Path) -> Command:
        """Started after the CRDs are Established: its garbage collector looks for new kinds every 30 s only."""
        pki = self.folder / "pki"
        return Command(
            "kube-controller-manager",
            [
                str(self.binaries["kube-controller-manager"]),
                f"--kubeconfig={kubeconfig}",
                "--leader-elect=false",
                f"--controllers={','.join(CONTROLLERS)}",
                f"--service-account-private-key-file={pki / 'sa.key'}",
                f"--root-ca-file={pki / 'ca.crt'}",
                "--secure-port=0",
                "--kube-api-qps=1000",  # 20 by default: pods of deleted clusters would go at half the speed
                "--kube-api-burst=2000",
                "--node-monitor-grace-period=3600s",  # a busy machine is no lost node
            ],
        )

    def scheduler(self, kubeconfig: Path) -> Command:
        """The default scheduler, with room to write."""
        return Command(
            "kube-scheduler",
            [
                str(self.binaries["kube-scheduler"]),
                f"--kubeconfig={kubeconfig}",
                "--leader-elect=false",
                "--secure-port=0",
                "--kube-api-qps=1000",
                "--kube-api-burst=2000",
            ],
        )

    def kwok(self, kubeconfig: Path, stages: Path) -> Command:
        """Plays the kubelets of the nodes that carry its annotation, and of no other."""
        return Command(
            "kwok",
            [
                str(self.binaries["kwok"]),
                f"--kubeconfig={kubeconfig}",
                "--manage-all-nodes=false",
                "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                f"--config={stages}",
                "--node-lease-duration-seconds=40",
                f"--server-address=127.0.0.1:{self.ports('kwok')}",
            ],
        )
