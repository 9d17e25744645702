"""The components of a cluster that run in it: applied, ready, ended and started again, and what they said."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from raykueue.clusters.protocol import ComponentSpec, Container, Manifest
from raykueue.errors import ClusterError, ComponentDied
from raykueue.kube.access import load_access
from raykueue.kube.apply import apply, location
from raykueue.kube.client import Api, ApiError
from raykueue.kube.waiting import Objects, until
from raykueue.model.views import deleting, is_true

READY_SECONDS = 180.0
"""Both were ready 32 to 40 s after they were applied, on a busy machine."""
END_SECONDS = 60.0
SETTINGS = "raykueue.dev/settings"
"""On a component's pods: the digest of all that decides how it runs, so that new settings make a new pod."""
LAST_LINES = 40
FIRST_BYTES = 1 << 20
"""Of a log that is read for what its component says at its start: both say it within some kilobytes."""
_HOPELESS = frozenset(
    {"CrashLoopBackOff", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError"}
)
"""Reasons of a waiting container after which waiting longer makes no sense."""


class Deployments:
    """All components of one cluster."""

    def __init__(
        self, kubeconfig: Path, specs: Sequence[ComponentSpec], look: Callable[[], None] = lambda: None
    ) -> None:
        self.specs = {spec.name: spec for spec in specs}
        self.expected_down: set[str] = set()
        """Components that somebody has ended, or is about to: nobody need be told of their end."""
        self._access = load_access(kubeconfig)
        self._api = Api(self._access)
        self._look = look

    def apply(self, name: str) -> None:
        """Applies the Deployment and what it needs, as the component's settings say."""
        spec = self.specs[name]
        apply(self._api, [one if one["kind"] != "Deployment" else stamped(spec) for one in spec.deployed])

    def wait_ready(self, name: str) -> None:
        """Returns when one pod with these settings is ready, and none without them is left.

        Raises:
            ComponentDied: it ends again and again, or its image can't be had; with its last lines of log.
            ClusterError: it was not ready in time.
        """
        wanted = stamped(self.specs[name])["spec"]["template"]["metadata"]["annotations"][SETTINGS]
        seen = "no pod yet"

        def ready(pods: Objects) -> bool | None:
            nonlocal seen
            seen = "; ".join(described(pod) for pod in pods.values()) or "no pod"
            current = [pod for pod in pods.values() if pod["metadata"].get("annotations", {}).get(SETTINGS) == wanted]
            if stuck := [pod for pod in current if hopeless(pod)]:
                raise ComponentDied(f"{name} does not start: {described(stuck[0])}; its log:\n{self.logs(name)}")
            return True if len(pods) == 1 and current and is_ready(current[0]) else None

        try:
            until(self._access, self.pods_of(name), ready, READY_SECONDS, self.selector_of(name), self._look)
        except TimeoutError:
            raise ClusterError(
                f"{name} was not ready after {READY_SECONDS:.0f} s: {seen}; the end of its log:\n{self.logs(name)}"
            ) from None

    def replace(self, spec: ComponentSpec) -> None:
        """Applies a component with other settings, and waits until it is ready."""
        self.specs[spec.name] = spec
        self.expected_down.add(spec.name)
        self.apply(spec.name)
        self.wait_ready(spec.name)
        self.expected_down.discard(spec.name)

    def kill(self, name: str) -> None:
        """Ends a component abruptly, and leaves it down: no pod of it is left."""
        self.expected_down.add(name)
        self._scale(name, 0)
        path, selector = self.pods_of(name), self.selector_of(name)
        for pod in self._api.get(path, labelSelector=selector)["items"]:
            # Not 0, by which the object would go at once and the process some time later, unseen.
            self._api.delete(f"{path}/{pod['metadata']['name']}", gracePeriodSeconds=1)
        try:
            until(self._access, path, lambda pods: None if pods else True, END_SECONDS, selector, self._look)
        except TimeoutError:
            raise ClusterError(f"{name} was told to end, but has pods after {END_SECONDS:.0f} s") from None

    def start(self, name: str) -> None:
        """Starts it again with the settings it had, and waits until it is ready."""
        self._scale(name, 1)
        self.wait_ready(name)
        self.expected_down.discard(name)

    def logs(self, name: str, lines: int = LAST_LINES) -> str:
        """The last lines of its log; of the container before, if the present one has just begun."""
        try:
            pods = self._api.get(self.pods_of(name), labelSelector=self.selector_of(name))["items"]
        except ClusterError as error:
            return f"    (no log: {error})"
        for pod in sorted(pods, key=lambda one: one["metadata"]["creationTimestamp"], reverse=True):
            restarted = any(one["restartCount"] for one in pod.get("status", {}).get("containerStatuses", []))
            for previous in ("true", "false") if restarted else ("false",):
                query = urlencode({"tailLines": lines, "previous": previous})
                try:
                    text = self._api.text(f"{self.pods_of(name)}/{pod['metadata']['name']}/log?{query}")
                except ApiError:
                    continue
                return "\n".join(f"    {line}" for line in text.splitlines()) or "    (empty log)"
        return "    (no log)"

    def containers(self, name: str) -> list[Container]:
        """The containers of its running pods."""
        return [
            Container(pod["metadata"]["name"], asked["name"], asked["image"], _images(pod).get(asked["name"], ""))
            for pod in self._running(name)
            for asked in pod["spec"]["containers"]
        ]

    def first_words(self, name: str) -> list[str]:
        """The first lines that its newest running pod has logged since its container was started; none without one.

        Raises:
            ApiError: they can't be read.
        """
        pods = sorted(self._running(name), key=lambda one: one["metadata"]["creationTimestamp"])
        if not pods:
            return []
        # Others may have put containers of their own beside it.
        query = urlencode({"container": next(iter(self.specs[name].images)), "limitBytes": FIRST_BYTES})
        return self._api.text(f"{self.pods_of(name)}/{pods[-1]['metadata']['name']}/log?{query}").splitlines()

    def pods_of(self, name: str) -> str:
        """The URL path of the collection that its pods are in."""
        return f"/api/v1/namespaces/{deployment_of(self.specs[name])['metadata']['namespace']}/pods"

    def selector_of(self, name: str) -> str:
        """What its pods are found by there."""
        labels = deployment_of(self.specs[name])["spec"]["selector"]["matchLabels"]
        return ",".join(f"{key}={value}" for key, value in labels.items())

    def _running(self, name: str) -> list[dict[str, Any]]:
        pods: list[dict[str, Any]] = self._api.get(self.pods_of(name), labelSelector=self.selector_of(name))["items"]
        return [pod for pod in pods if pod.get("status", {}).get("phase") == "Running" and not deleting(pod)]

    def _scale(self, name: str, replicas: int) -> None:
        self._api.merge(location(deployment_of(self.specs[name])), {"spec": {"replicas": replicas}})


def deployment_of(spec: ComponentSpec) -> Manifest:
    """The component's Deployment.

    Raises:
        ClusterError: it has none, or several.
    """
    found = [manifest for manifest in spec.deployed if manifest["kind"] == "Deployment"]
    if len(found) != 1:
        raise ClusterError(f"{spec.name} has {len(found)} Deployments, expected one")
    return found[0]


def stamped(spec: ComponentSpec) -> dict[str, Any]:
    """Its Deployment, whose pods carry the digest of everything that is deployed with it."""
    digest = hashlib.sha256(json.dumps(list(spec.deployed), sort_keys=True).encode()).hexdigest()[:16]
    deployment = copy.deepcopy(dict(deployment_of(spec)))
    deployment["spec"]["template"]["metadata"].setdefault("annotations", {})[SETTINGS] = digest
    return deployment


def _images(pod: Mapping[str, Any]) -> dict[str, str]:
    return {one["name"]: one.get("image", "") for one in pod["status"].get("containerStatuses", [])}


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is ready, and stays."""
    return is_true(pod, "Ready") and not deleting(pod)


def hopeless(pod: Mapping[str, Any]) -> bool:
    """Whether one of its containers will not start."""
    states = [one.get("state", {}) for one in pod.get("status", {}).get("containerStatuses", [])]
    return any(state.get("waiting", {}).get("reason") in _HOPELESS for state in states)


def described(pod: Mapping[str, Any]) -> str:
    """A pod in one line: its phase, why a container waits or ended, how often it was started again."""
    status = pod.get("status", {})
    parts = [f"pod {pod['metadata']['name']} is {status.get('phase', 'Unknown')}"]
    if "deletionTimestamp" in pod["metadata"]:
        parts.append("told to go")
    parts += [
        one.get("message", "not scheduled")
        for one in status.get("conditions", [])
        if one["type"] == "PodScheduled" and one["status"] == "False"
    ]
    for container in status.get("containerStatuses", []):
        for name in ("waiting", "terminated"):
            if about := container.get("state", {}).get(name):
                code = f" with code {about['exitCode']}" if "exitCode" in about else ""
                why = f": {about['message']}" if about.get("message") else ""
                parts.append(f"{container['name']} {name} ({about.get('reason', 'no reason')}{code}){why}")
        if container.get("restartCount"):
            parts.append(f"{container['name']} started again {container['restartCount']} times")
    return ", ".join(parts)
