"""What every backend offers, and what it is told to install."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from raykueue.clusters.graph import Timing
from raykueue.errors import ClusterError, ComponentDied

Tier: TypeAlias = Literal["control-plane", "node"]
"""control-plane: nodes and Ray are simulated, everything else is real. node: real kubelet, real Ray."""

Manifest: TypeAlias = Mapping[str, Any]
Manifests: TypeAlias = Sequence[Manifest]


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """The identity under which a component talks to the API."""

    namespace: str
    name: str


class Seat(Protocol):
    """Where a component is put, when a backend runs it as a process."""

    @property
    def folder(self) -> Path:
        """Its own folder, for configuration, certificates and sockets."""
        ...

    @property
    def kubeconfig(self) -> Path:
        """Under its own identity."""
        ...

    @property
    def can_mount(self) -> bool:
        """Whether the process can be given files at a path of its own choosing (`Process.mounts`)."""
        ...

    def port(self, purpose: str) -> int:
        """A free port on loopback, the same for the same purpose."""
        ...

    def service_port(self, namespace: str, name: str) -> int:
        """The port on loopback that stands for a Service of the cluster (webhooks are called there)."""
        ...


@dataclass(frozen=True, slots=True)
class Process:
    """How a component is run as a process of its own."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Written below the seat's folder before it starts, readable by the owner only."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Path below /etc that it insists on, to a folder below the seat's folder; only where the seat can mount."""
    ready_url: str = ""
    """Answers 200 once it is ready; empty: it is ready once it runs."""


def no_process(_: Seat) -> Process:
    """Of a component that only runs in the cluster itself."""
    raise ClusterError("this component has no process of its own: it runs in the cluster, as a Deployment")


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """A component from the pinned module's own manifests: what it needs, how it is run, what calls it."""

    name: str
    account: ServiceAccount | None
    process: Callable[[Seat], Process] = no_process
    deployed: Manifests = ()
    """How it runs in the cluster itself: one Deployment, and what that needs: configuration, Services."""
    objects: Manifests = ()
    """Namespace, RBAC, secrets: as shipped; exist before it starts."""
    webhooks: Manifests = ()
    """Webhook configurations, as shipped: registered before it is ready, called at its Services."""
    after: Sequence[str] = ()
    """Components that must be ready before this one starts."""
    early: bool = False
    """It takes long to become ready, so it is started as soon as the API server knows what its account may do."""

    @property
    def images(self) -> dict[str, str]:
        """Container → the image that it is deployed with."""
        return {
            container["name"]: container["image"]
            for manifest in self.deployed
            if manifest["kind"] == "Deployment"
            for container in manifest["spec"]["template"]["spec"]["containers"]
        }


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a component that runs in a pod."""

    pod: str
    name: str
    image: str
    """As its pod asks for it."""
    runs: str
    """As the container runtime calls what it was started from; empty if it does not say."""


class Inspectable(Protocol):
    """What a cluster tells of what runs in it, so that it can be compared with what was pinned."""

    def programs(self) -> Mapping[str, Path] | None:
        """Component → the program that runs as its process; None: none is a process of this machine."""
        ...

    def containers(self) -> Mapping[str, Sequence[Container]]:
        """Component → the containers of its pods; of those components that this suite has deployed."""
        ...

    def kubelets(self) -> Mapping[str, str]:
        """Node → the version of its kubelet; of nodes that are real, and were made by this suite."""
        ...

    def first_words(self, component: str) -> Iterable[str]:
        """Lines that a component has logged, those of its last start among them; none if we may not read them."""
        ...


class Cluster(Inspectable, Protocol):
    """A running Kubernetes cluster that the suite may change."""

    about: dict[str, Any]
    """What others should know who attach to it: the pair, the lock's digest. Set it before `start`."""
    timings: list[Timing]
    """Where the time of its start went, step by step; empty if it was not started here."""

    probing: str
    """The namespace in which it is tried whether the controllers work."""

    @property
    def name(self) -> str:
        """As `raykueue status` shows it."""
        ...

    @property
    def kubeconfig(self) -> Path:
        """Of an identity that may do everything the suite does; never the user's own file."""
        ...

    @property
    def tier(self) -> Tier:
        """What is real in it."""
        ...

    @property
    def how(self) -> str:
        """How it came up, in two or three words: "cold", "from a saved state"."""
        ...

    def start(self, crds: Manifests, components: Sequence[ComponentSpec]) -> None:
        """Control plane and nodes up, CRDs Established, components ready.

        Raises:
            ClusterError: with the last words of what did not start. `stop` removes what is left.
        """
        ...

    def attach(self, components: Sequence[ComponentSpec]) -> None:
        """Takes over a cluster that runs already."""
        ...

    def detach(self) -> None:
        """From now on the cluster outlives this process."""
        ...

    def watch(self, on_death: Callable[[ComponentDied], None]) -> None:
        """Tells at once, from a thread of its own, when a component ends by itself."""
        ...

    def check(self) -> None:
        """Raises ComponentDied if something that was started does not run any more."""
        ...

    def replace(self, component: ComponentSpec) -> None:
        """Restarts a component with other settings; returns when it is ready."""
        ...

    def logs(self, component: str) -> str:
        """The last lines of a component's log."""
        ...

    def export_logs(self, folder: Path) -> None:
        """Writes everything that its components said into a folder, which is made; best called before `stop`."""
        ...

    def stop(self) -> None:
        """Nothing of it is left behind."""
        ...

    def close(self) -> None:
        """Lets go of a cluster that stays up."""
        ...


@runtime_checkable
class Faults(Protocol):
    """What a backend offers to fault tests; without it they are not-applicable."""

    def kill(self, component: str) -> None:
        """Ends a component abruptly, and leaves it down."""
        ...

    def start_component(self, component: str) -> None:
        """Starts it again, with the settings it had."""
        ...


@runtime_checkable
class NodeFaults(Protocol):
    """What a backend whose nodes are its own offers besides; without it such tests are not-applicable."""

    def stop_node(self, node: str) -> None:
        """Ends a node as a power cut does, and leaves it down."""
        ...

    def start_node(self, node: str) -> None:
        """Starts it again; its kubelet reports when it can."""
        ...

    def restart_kubelet(self, node: str) -> None:
        """Ends the kubelet and starts it again; containers go on."""
        ...
