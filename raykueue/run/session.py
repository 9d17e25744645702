"""A test process's side of a run: the cluster, the recorder and Ray, reached once and shared by its tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raykueue.clusters.protocol import Tier
from raykueue.controllers.settings import DEFAULT, Settings
from raykueue.errors import ClusterError, ComponentDied
from raykueue.kube.access import load_access
from raykueue.kube.client import Api
from raykueue.kube.exec import Exec, WebsocketExec
from raykueue.ray.control import RayControl, SimulatedRay
from raykueue.ray.real import RealRay
from raykueue.run.recording import Recording
from raykueue.run.wire import Connection, Message
from raykueue.toolchain.lock import load_versions

CLUSTER_SECONDS = 45 * 60.0
"""A first run builds every binary: about 15 minutes on two cores."""
COMPONENT_SECONDS = 240.0
"""To end a component or start it: longer than the owner waits for it to be ready, so that it can say why it isn't."""
LEASE_SECONDS = 30 * 60.0
"""Until every other test has let go of the cluster."""


class Session:
    """What one test process has of the run; everything is connected at first use."""

    def __init__(self, owner: Path) -> None:
        self._recordings: list[Recording] = []
        self._deaths: list[ComponentDied] = []
        self._owner = Connection(owner, on_push=self._told, error=ClusterError)
        try:
            about = self._owner.call("cluster", timeout_s=CLUSTER_SECONDS)
            access = load_access(Path(about["kubeconfig"]))
            self.api = Api(access)
            self.run: Exec = WebsocketExec(access)
            """Commands in containers; only where these are real."""
            self.recording = Recording(Path(about["recorder"]))
            self._recordings.append(self.recording)
            for death in self._deaths:  # before there was a recording
                self.recording.give_up(death)
        except BaseException:
            self._owner.close()
            raise
        self.pair: Mapping[str, str] = about["pair"]
        self.tier: Tier = about["tier"]
        self.journals = Path(about["journals"])
        self.ray = _ray(about["ray"], self.api, self.run, self.pair)
        self._socket = owner

    def lease(self, settings: Settings = DEFAULT, *, alone: bool = False) -> Lease:
        """Waits until the calling test may use the cluster: beside others that want the same settings, or alone."""
        return Lease(self._socket, settings, alone=alone)

    def _told(self, message: Message) -> None:
        death = ComponentDied(message["error"])
        self._deaths.append(death)
        for recording in self._recordings:
            recording.give_up(death)

    def close(self) -> None:
        """Lets go of everything."""
        self.recording.disconnect()
        self._owner.close()


class Lease:
    """The right to use the cluster; a connection of its own, so that it ends with whoever has it."""

    def __init__(self, owner: Path, settings: Settings = DEFAULT, *, alone: bool = False) -> None:
        self._connection = Connection(owner, error=ClusterError)
        try:
            self._connection.call("lease", timeout_s=LEASE_SECONDS, settings=settings.as_dict(), alone=alone)
        except BaseException:
            self._connection.close()
            raise

    def kill(self, component: str) -> None:
        """Ends a component abruptly, and leaves it down."""
        self._connection.call("kill", timeout_s=COMPONENT_SECONDS, component=component)

    def start_component(self, component: str) -> None:
        """Starts it again."""
        self._connection.call("start_component", timeout_s=COMPONENT_SECONDS, component=component)

    def stop_node(self, node: str) -> None:
        """Ends a node abruptly, and leaves it down."""
        self._connection.call("stop_node", timeout_s=COMPONENT_SECONDS, node=node)

    def start_node(self, node: str) -> None:
        """Starts it again."""
        self._connection.call("start_node", timeout_s=COMPONENT_SECONDS, node=node)

    def restart_kubelet(self, node: str) -> None:
        """Ends a node's kubelet and starts it again."""
        self._connection.call("restart_kubelet", timeout_s=COMPONENT_SECONDS, node=node)

    def release(self) -> None:
        """Gives it back."""
        self._connection.close()


def _ray(how: Mapping[str, Any], api: Api, run: Exec, pair: Mapping[str, str]) -> RayControl:
    if "simulated" in how:
        return SimulatedRay(Path(how["simulated"]))
    versions = load_versions()
    # Somebody's cluster may have a KubeRay that is none of ours.
    return RealRay(api, run, versions.ray.get(pair["kuberay"]) or versions.ray_version(versions.default))
