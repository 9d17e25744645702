"""An existing cluster: nothing is installed, started or ended in it, and what we make there we remove."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from raykueue.clusters.deaths import Deaths
from raykueue.clusters.deployments import Deployments, described, hopeless
from raykueue.clusters.existing import installed, kubeconfig
from raykueue.clusters.folder import ClusterFolder
from raykueue.clusters.graph import Timing
from raykueue.clusters.protocol import ComponentSpec, Container, Manifests, Tier
from raykueue.errors import ClusterError, ComponentDied
from raykueue.kube.access import load_access
from raykueue.kube.client import Api, ApiError

BACKEND = "existing"
CHECKED = ("namespaces", "clusterqueues.kueue.x-k8s.io", "rayjobs.ray.io")
"""What the user must be allowed to create: the suite's own."""


class ExistingCluster:
    """Somebody's cluster, under the identity that their kubeconfig gives us."""

    tier: Tier = "node"
    how = "it was up"

    def __init__(self, folder: ClusterFolder, document: Mapping[str, Any]) -> None:
        """`document`: a kubeconfig with one context (`kubeconfig.minimal`)."""
        self.name = folder.name
        self.kubeconfig = folder.path / "kubeconfig"
        self.about: dict[str, Any] = {}
        self.timings: list[Timing] = []
        self.probing = f"raykueue-probe-{uuid.uuid4().hex[:6]}"
        """A namespace of this run, in which it is tried whether the controllers work."""
        self._folder = folder
        self._document = document
        self._deployments: Deployments | None = None
        self._deaths: Deaths | None = None
        self._made_namespace = False

    def start(self, crds: Manifests, components: Sequence[ComponentSpec]) -> None:
        """Looks whether what is needed is there and allowed. `crds` and `components` are none: nothing is installed."""
        if crds or components:
            raise ClusterError(f"nothing is installed into an existing cluster ({self.name})")
        begun = time.time()
        self._folder.path.mkdir(mode=0o700, exist_ok=True)
        kubeconfig.write(self._document, self.kubeconfig)
        self.attach(installed.look(self._api).components)
        self._check_rights()
        self._folder.describe({**self.about, "backend": BACKEND, "kubeconfig": str(self.kubeconfig), "started": begun})
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.probing}}
        self._api.create("/api/v1/namespaces", namespace)
        self._made_namespace = True

    def attach(self, components: Sequence[ComponentSpec]) -> None:
        """Knows where the controllers run."""
        self._deployments = Deployments(self.kubeconfig, components)

    def detach(self) -> None:
        """It outlives us anyway."""

    def watch(self, on_death: Callable[[ComponentDied], None]) -> None:
        """Tells when a controller ends or stops working: no test proves anything about the others meanwhile."""
        self._deaths = Deaths(self.kubeconfig, self._deployed, self.name)
        self._deaths.start(on_death)

    def check(self) -> None:
        """Whether both controllers have pods that work."""
        for name in self._deployed.specs:
            pods = self._api.get(self._deployed.pods_of(name), labelSelector=self._deployed.selector_of(name))["items"]
            if not pods or all(hopeless(pod) for pod in pods):
                seen = "; ".join(described(pod) for pod in pods) or "it has no pod"
                raise ComponentDied(f"{name} of cluster {self.name} does not run: {seen}")

    def replace(self, component: ComponentSpec) -> None:
        """Never: the controllers are not ours."""
        raise ClusterError(f"the settings of {component.name} in {self.name} are not ours to change")

    def logs(self, component: str) -> str:
        """The last lines of a controller's log, if we may read them."""
        return self._deployed.logs(component) if self._deployments is not None else "    (no log)"

    def programs(self) -> None:
        """Nothing of it is a process of this machine."""

    def containers(self) -> dict[str, list[Container]]:
        """None of ours: what the controllers run was read from there, a site may take it from a mirror of its own."""
        return {}

    def kubelets(self) -> dict[str, str]:
        """None of ours: they may be older than the API server, from which the pair's Kubernetes was read."""
        return {}

    def first_words(self, component: str) -> list[str]:
        """What a controller has logged since it was started, if we may read it and it was not rotated away."""
        try:
            return self._deployed.first_words(component)
        except ApiError:
            return []

    def export_logs(self, folder: Path) -> None:
        """The last lines of both controllers: the rest of the cluster's logs are not ours to copy."""
        if self._deployments is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        for name in self._deployments.specs:
            (folder / f"{name}.log").write_text(self._deployments.logs(name, lines=2000), encoding="utf-8")

    def stop(self) -> None:
        """Removes our namespace and our copy of the kubeconfig; the cluster stays."""
        self.close()
        if self._made_namespace:
            self._api.delete(f"/api/v1/namespaces/{self.probing}")
            self._made_namespace = False
        self._folder.clear()

    def close(self) -> None:
        """Ends the watching."""
        if self._deaths is not None:
            self._deaths.stop()
            self._deaths = None

    @property
    def _deployed(self) -> Deployments:
        if self._deployments is None:
            raise ClusterError(f"cluster {self.name} was not looked at yet")
        return self._deployments

    @property
    def _api(self) -> Api:
        return Api(load_access(self.kubeconfig))

    def _check_rights(self) -> None:
        """Said at the start, by name, and not by the first test that fails."""
        refused = []
        for what in CHECKED:
            resource, _, group = what.partition(".")
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": "create", "group": group, "resource": resource}},
            }
            answer = self._api.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
            if not answer["status"].get("allowed"):
                refused.append(what)
        if refused:
            raise ClusterError(
                f"the context of cluster {self.name} may not create {', '.join(refused)}; the suite makes namespaces, "
                "queues and jobs of its own"
            )
