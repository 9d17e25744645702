"""Where the Ray job of a RayJob is: its submission id, its head, and the container that runs its entrypoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from raykueue.errors import ClusterError, UsageError
from raykueue.kube.client import Api, ApiError
from raykueue.kube.exec import Container
from raykueue.model.events import Object
from raykueue.model.views import NODE_TYPE, labels, status

SUBMITTER = "ray-job-submitter"
"""KubeRay's name for the sidecar that submits (ray-operator controllers/ray/utils/constant.go@v1.6.2)."""


@dataclass(frozen=True, slots=True)
class Located:
    """The Ray job of a RayJob's current attempt, and the running pods of its cluster."""

    rayjob: Object
    submission_id: str
    head: Object
    pods: tuple[Object, ...]

    @property
    def name(self) -> str:
        """For messages: RayJob ns/name."""
        return f"RayJob {self.rayjob['metadata']['namespace']}/{self.rayjob['metadata']['name']}"

    @property
    def sidecar(self) -> Container | None:
        """The container that submitted it, if that is one of the head pod."""
        names = [one["name"] for one in self.head["spec"]["containers"]]
        return container(self.head, SUBMITTER) if SUBMITTER in names else None

    def driver(self, details: Mapping[str, Any]) -> Container:
        """The container that runs the entrypoint of the job whose JobDetails these are.

        Raises:
            ClusterError: no pod of the cluster has the address that Ray tells.
        """
        address = urlsplit(str(details.get("driver_agent_http_address") or "")).hostname
        if address is None:  # Ray before 2.7 does not tell; it ran them on the head
            return container(self.head)
        for pod in self.pods:
            if status(pod).get("podIP") == address:
                return container(pod)
        raise ClusterError(f"{self.name}: its entrypoint runs at {address}, which is no running pod of its cluster")


def container(pod: Object, name: str = "") -> Container:
    """A container of a pod; without a name the one that runs Ray, which is the first."""
    about = pod["metadata"]
    return Container(about["namespace"], about["name"], name or pod["spec"]["containers"][0]["name"])


def locate(api: Api, namespace: str, name: str) -> Located:
    """Finds it.

    Raises:
        UsageError: there is no such RayJob, or nothing of it runs.
    """
    what = f"RayJob {namespace}/{name}"
    try:
        rayjob = api.get(f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs/{name}")
    except ApiError as error:
        if error.code != 404:
            raise
        raise UsageError(f"{what} is unknown: not created yet, or deleted") from error
    about = status(rayjob)
    cluster, submission_id = about.get("rayClusterName"), about.get("jobId")
    if not cluster or not submission_id:
        said = about.get("jobDeploymentStatus") or "empty"
        raise UsageError(f"{what}: nothing was started for it yet (jobDeploymentStatus {said})")
    found = api.get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=f"ray.io/cluster={cluster}")["items"]
    running = tuple(pod for pod in found if status(pod).get("phase") == "Running")
    heads = [pod for pod in running if labels(pod).get(NODE_TYPE) == "head"]
    if not heads:
        raise UsageError(f"{what}: the head pod of its RayCluster {cluster} does not run")
    return Located(rayjob, str(submission_id), heads[0], running)
