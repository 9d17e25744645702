"""A kind cluster: started, attached to, kept, stopped. What can be done at once is done at once."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from raykueue.clusters import graph
from raykueue.clusters.deaths import Deaths
from raykueue.clusters.deployments import Deployments, described, hopeless
from raykueue.clusters.folder import ClusterFolder, Removal
from raykueue.clusters.graph import Step
from raykueue.clusters.kind import preflight
from raykueue.clusters.kind.bootstrap import Bootstrap
from raykueue.clusters.kind.commands import NETWORK, Commands, environment
from raykueue.clusters.kind.config import control_plane, workers
from raykueue.clusters.kind.docker import Docker
from raykueue.clusters.kind.driver import check_extra, kind_cluster
from raykueue.clusters.kind.images import Images
from raykueue.clusters.kind.ingredients import BACKEND, KINDS_OWN, Ingredients, node_prefix
from raykueue.clusters.kind.nodes import Nodes
from raykueue.clusters.protocol import ComponentSpec, Container, Manifests, Tier
from raykueue.errors import ClusterError, ComponentDied
from raykueue.kube.access import load_access
from raykueue.kube.client import Api


class KindCluster:
    """Nodes in containers of the local Docker; KubeRay and Kueue as Deployments; real Ray."""

    tier: Tier = "node"
    how = "new nodes"

    def __init__(
        self, folder: ClusterFolder, ingredients: Ingredients, log: Callable[[str], None] = lambda _: None
    ) -> None:
        """`log("")` says nothing: it is asked now and then whether to go on, and raises if not."""
        self.name = folder.name
        self.kubeconfig = folder.path / "kubeconfig"
        self.about: dict[str, Any] = {}
        """Written into the folder, for whoever attaches: the pair, the lock's digest."""
        self.probing = "default"
        self.timings: list[graph.Timing] = []
        self._folder = folder
        self._ingredients = ingredients
        self._log = log
        self._nodes = node_prefix(folder.name)
        self._kinds_own = folder.path / KINDS_OWN
        self._commands = Commands(environment(self._kinds_own, self._nodes), lambda: log(""))
        self._deployments: Deployments | None = None
        self._deaths: Deaths | None = None

    @staticmethod
    def preflight(folder: ClusterFolder) -> None:
        """Whether a cluster can be started here.

        Raises:
            ClusterError: it can't; the message says what to do.
        """
        check_extra()
        kinds_own, nodes = folder.path / KINDS_OWN, node_prefix(folder.name)
        preflight.check(Docker(Commands(environment(kinds_own, nodes))))

    def start(self, crds: Manifests, components: Sequence[ComponentSpec]) -> None:
        """Everything up: nodes, CRDs Established, images loaded, components ready. What failed stays until `stop`."""
        begun = time.time()
        self._folder.path.mkdir(mode=0o700, exist_ok=True)
        self._folder.record(self._removals())
        made = self._ingredients
        docker = Docker(self._commands)
        driver = kind_cluster(self._nodes, self._kinds_own, made.node_image, made.kind, made.kubectl, self._commands)
        images = Images(docker, made.archives)
        bootstrap = Bootstrap(self._folder.path, self.kubeconfig, self._nodes, driver, images, self._look)
        self.timings = graph.run(self._steps(bootstrap, crds, components), self._commands.give_up)
        self._folder.describe(
            {
                **self.about,
                "backend": BACKEND,
                "kubeconfig": str(self.kubeconfig),
                "started": begun,
                "seconds": round(time.time() - begun, 2),
                "timings": [[one.name, round(one.begin, 2), round(one.end, 2)] for one in self.timings],
                "owner": os.getpid(),
            }
        )

    def attach(self, components: Sequence[ComponentSpec]) -> None:
        """Takes over a cluster that runs already."""
        self._deployments = Deployments(self.kubeconfig, components, self._look)

    def detach(self) -> None:
        """From now on the cluster outlives this process."""
        self._folder.record(self._removals(), detached=True)

    def watch(self, on_death: Callable[[ComponentDied], None]) -> None:
        """Tells, from a thread of its own, when a component ends by itself."""
        self._deaths = Deaths(self.kubeconfig, self._deployed, self.name)
        self._deaths.start(on_death)

    def check(self) -> None:
        """Whether every component is there."""
        api = Api(load_access(self.kubeconfig))
        for name in self._deployed.specs:
            pods = api.get(self._deployed.pods_of(name), labelSelector=self._deployed.selector_of(name))["items"]
            if not pods or any(hopeless(pod) for pod in pods):
                seen = "; ".join(described(pod) for pod in pods) or "it has no pod"
                raise ComponentDied(f"{name} of cluster {self.name} does not run: {seen}; its log:\n{self.logs(name)}")

    def logs(self, component: str) -> str:
        """The last lines of a component's log."""
        return self._deployed.logs(component)

    def programs(self) -> None:
        """Nothing of it is a process of this machine."""

    def containers(self) -> dict[str, list[Container]]:
        """Of both controllers."""
        return {name: self._deployed.containers(name) for name in self._deployed.specs}

    def kubelets(self) -> dict[str, str]:
        """Of every node."""
        nodes = Api(load_access(self.kubeconfig)).get("/api/v1/nodes")["items"]
        return {node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes}

    def first_words(self, component: str) -> list[str]:
        """What a controller has logged since it was started, from the first line on."""
        return self._deployed.first_words(component)

    def export_logs(self, folder: Path) -> None:
        """What nodes and pods said, in kind's own layout, and the cluster as `kubectl` shows it."""
        folder.mkdir(parents=True, exist_ok=True)
        made = self._ingredients
        # Others than the cluster's: it may be on its way out, and its commands given up.
        commands = Commands(environment(self._kinds_own, self._nodes))
        driver = kind_cluster(self._nodes, self._kinds_own, made.node_image, made.kind, made.kubectl, commands)
        try:
            driver.export_logs(folder)
        finally:
            if self.kubeconfig.exists():  # its API server need not answer
                with contextlib.suppress(OSError, subprocess.SubprocessError):
                    text = driver.seen_by_kubectl(self.kubeconfig)
                    (folder / "kubectl.txt").write_text(text, encoding="utf-8")

    def stop(self) -> None:
        """Removes nodes, their volumes and network, and the folder."""
        self.close()
        self._commands.give_up()
        self._folder.clear()

    def close(self) -> None:
        """Lets go of a cluster that stays up."""
        if self._deaths is not None:
            self._deaths.stop()
            self._deaths = None

    def replace(self, component: ComponentSpec) -> None:
        """Gives a component other settings; returns when a pod with them is ready and the old one gone."""
        self._deployed.replace(component)

    def kill(self, component: str) -> None:
        """Ends a component abruptly, and leaves it down."""
        self._deployed.kill(component)

    def start_component(self, component: str) -> None:
        """Starts it again, with the settings it had; returns when it is ready."""
        self._deployed.start(component)

    def stop_node(self, node: str) -> None:
        """Ends a node as a power cut does, and leaves it down."""
        self._faults().lose(node)

    def start_node(self, node: str) -> None:
        """Starts it again; returns when it is Ready."""
        self._faults().find(node)

    def restart_kubelet(self, node: str) -> None:
        """Ends the kubelet and starts it again; containers go on. Returns when it answers."""
        self._faults().restart_kubelet(node)

    def _faults(self) -> Nodes:
        return Nodes(Docker(self._commands), self.kubeconfig, self._look)

    @property
    def _deployed(self) -> Deployments:
        if self._deployments is None:
            raise ClusterError(f"cluster {self.name} is not running")
        return self._deployments

    def _steps(self, bootstrap: Bootstrap, crds: Manifests, components: Sequence[ComponentSpec]) -> Mapping[str, Step]:
        def connected() -> None:
            bootstrap.wait_api()
            self._deployments = Deployments(self.kubeconfig, components, self._look)

        def deployer(name: str) -> Callable[[], None]:
            return lambda: self._deployed.apply(name)

        def waiter(name: str) -> Callable[[], None]:
            return lambda: self._deployed.wait_ready(name)

        objects = [manifest for spec in components for manifest in spec.objects]
        webhooks = [manifest for spec in components for manifest in spec.webhooks]
        steps = {
            "nodes": Step(bootstrap.create_nodes),
            "api": Step(connected),
            "crds": Step(lambda: bootstrap.establish(crds), ["api"]),
            "objects": Step(lambda: bootstrap.apply(objects), ["api"]),
            "webhooks": Step(lambda: bootstrap.apply(webhooks), ["api"]),
            "network": Step(bootstrap.free_cpu, ["api"]),
            "gpus": Step(bootstrap.claim_gpus, ["nodes"]),
        }
        made, control_plane_only, all_workers = self._ingredients, [control_plane(self._nodes)], workers(self._nodes)
        homes = dict.fromkeys(made.worker_images, all_workers) | dict.fromkeys(
            made.control_plane_images, control_plane_only
        )
        before = "api"  # one after the other, those that are needed first at the front: they share disk and CPU
        for reference in (*made.control_plane_images, *made.worker_images):
            steps[f"archive {reference}"] = Step(bootstrap.saver(reference))
            loader = bootstrap.loader(reference, homes[reference])
            steps[f"load {reference}"] = Step(loader, [f"archive {reference}", before])
            before = f"load {reference}"
        for spec in components:
            loads = [f"load {image}" for image in spec.images.values() if f"load {image}" in steps]
            steps[spec.name] = Step(deployer(spec.name), ["crds", "objects", "webhooks", *loads])
            steps[f"{spec.name} ready"] = Step(waiter(spec.name), [spec.name])
        return steps

    def _look(self) -> None:
        self._commands.go_on()

    def _removals(self) -> list[Removal]:
        env = environment(self._kinds_own, self._nodes)
        kept = {key: env[key] for key in env if key in _KEPT or key.startswith(("DOCKER_", "KIND_", "KUBECONFIG"))}
        delete = [str(self._ingredients.kind), "delete", "cluster", "--name", self._nodes]
        return [
            Removal([*delete, "--kubeconfig", str(self._kinds_own)], kept, mark=f"{NETWORK}={self._nodes}"),
            Removal([shutil.which("docker") or "docker", "network", "rm", self._nodes], kept, gone=_NO_NETWORK),
        ]


_NO_NETWORK = ("not found", "No such network")
"""What docker says of a network that is not there: from version 23 on, and before."""
_KEPT = frozenset({"HOME", "PATH", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"})
"""What docker and kind look at, besides what is theirs by name."""
