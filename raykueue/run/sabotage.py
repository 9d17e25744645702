"""What a test does to the cluster behind the products' backs, to prove that it is found."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid

from raykueue.errors import ClusterError, UsageError
from raykueue.kube.apply import create
from raykueue.kube.client import Api, ApiError
from raykueue.model.events import Object
from raykueue.run.feed import Feed
from raykueue.run.job import Job
from raykueue.run.queue import Queue
from raykueue.run.recording import Recording
from raykueue.run.session import Lease

FINALIZER = "raykueue.dev/kept"
TOLD_TO_GO_SECONDS = 120.0
_KILLED = {137, -9}
"""Exit codes of what the kernel has killed: as a shell says it, and as a runtime may."""


class Sabotage:
    """Whatever is still done when the test is over is undone then."""

    def __init__(self, api: Api, recording: Recording, lease: Lease) -> None:
        self._api = api
        self._recording = recording
        self._lease = lease
        self._down: dict[str, bool] = {}
        self._kept: dict[str, threading.Event] = {}
        self._lost: dict[str, None] = {}

    def pod_beside(self, job: Job, **requests: str) -> str:
        """Adds a pod that belongs to the job's RayCluster and that nobody pays for; returns its name."""
        name = f"{job.name}-stray-{uuid.uuid4().hex[:5]}"
        container = {"name": "stray", "image": "none", "resources": {"requests": requests}}
        create(
            self._api,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": job.namespace,
                    "ownerReferences": job.head["metadata"]["ownerReferences"],
                },
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
            },
        )
        return name

    def remove(self, job: Job, pod: str) -> None:
        """Deletes a pod that was added, and waits until it is gone."""
        self._api.delete(f"/api/v1/namespaces/{job.namespace}/pods/{pod}")
        deadline = time.monotonic() + TOLD_TO_GO_SECONDS
        job.history.feed.wait(lambda feed: None if feed.object("Pod", job.namespace, pod) else True, deadline)

    def keep_head(self, job: Job, seconds: float) -> None:
        """Keeps the job's head pod for `seconds` after it is told to go, by a finalizer that nobody else removes."""
        head = job.head
        path = _path(head)
        self._api.merge(path, {"metadata": {"finalizers": [FINALIZER]}})
        let_go = self._kept[path] = threading.Event()

        def told_to_go(feed: Feed) -> bool | None:
            seen = feed.object("Pod", job.namespace, head["metadata"]["name"])
            return True if seen is None or seen["metadata"].get("deletionTimestamp") else None

        def keep() -> None:
            try:
                job.history.feed.wait(told_to_go, time.monotonic() + TOLD_TO_GO_SECONDS)
                let_go.wait(seconds)  # how long the leak lasts is what the test is about
            finally:
                self._release(path)

        threading.Thread(target=keep, name=f"keeps {head['metadata']['name']}", daemon=True).start()

    def exhaust_memory(self, job: Job) -> None:
        """Lets the job's head run out of memory, so that the kernel kills its first process, which is Ray's."""
        # A process may make its like easier to kill; and what is only reserved is no use of memory, so it is filled.
        fill = "import itertools; held = [b'x' * (1 << 24) for _ in itertools.count()]"
        wanted = f'echo 1000 > /proc/1/oom_score_adj && exec python3 -c "{fill}"'
        with contextlib.suppress(ClusterError):  # the container may be gone before the command has ended
            ran = job.run_in_head("sh", "-c", wanted)
            if ran.exit_code not in _KILLED:
                raise UsageError(f"{job}: memory of its head can't be exhausted: {ran.output.strip()[-300:]}")

    def delete_workload(self, job: Job) -> None:
        """Deletes the job's Workload by hand."""
        workload = job.history.workload()
        if workload is None:
            raise UsageError(f"{job} has no Workload")
        namespace, name = workload["metadata"]["namespace"], workload["metadata"]["name"]
        self._api.delete(f"/apis/{workload['apiVersion']}/namespaces/{namespace}/workloads/{name}")

    def shrink(self, queue: Queue, resource: str, quota: str) -> None:
        """Lowers a ClusterQueue's nominal quota, whatever is in use."""
        found = queue.feed.object("ClusterQueue", "", queue.name)
        if found is None:
            raise UsageError(f"ClusterQueue {queue.name} is not there")
        path = f"/apis/{found['apiVersion']}/clusterqueues/{queue.name}"
        groups = self._api.get(path)["spec"]["resourceGroups"]
        for one in (one for group in groups for flavor in group["flavors"] for one in flavor["resources"]):
            if one["name"] == resource:
                one["nominalQuota"] = quota
        self._api.merge(path, {"spec": {"resourceGroups": groups}})

    def kill(self, component: str, *, told: bool = True) -> None:
        """Ends Kueue or KubeRay abruptly. `told`: the journal says so, and the rules' clocks stand still meanwhile."""
        self._lease.kill(component)
        self._down[component] = told
        if told:
            self._recording.mark(f"{component}-down")

    def revive(self, component: str) -> None:
        """Starts it again, and returns when it is ready."""
        self._lease.start_component(component)
        if self._down.pop(component):
            self._recording.mark(f"{component}-up")

    def outage(self, component: str, seconds: float, *, told: bool = True) -> None:
        """Keeps it down for that long: how long is what the test is about."""
        self.kill(component, told=told)
        threading.Event().wait(seconds)
        self.revive(component)

    def lose_node(self, job: Job) -> str:
        """Ends the node that the job's head runs on, as a power cut does; returns its name."""
        node = str(job.head["spec"]["nodeName"])
        self._lost[node] = None
        self._lease.stop_node(node)
        return node

    def find_node(self, node: str) -> None:
        """Starts a node again that was lost."""
        self._lease.start_node(node)
        self._lost.pop(node, None)

    def restart_kubelet(self, job: Job) -> None:
        """Restarts the kubelet of the node that the job's head runs on."""
        self._lease.restart_kubelet(str(job.head["spec"]["nodeName"]))

    def undo(self) -> None:
        """Brings back whatever is down or lost, and lets go of whatever is kept."""
        for node in list(self._lost):
            self.find_node(node)
        for component in list(self._down):
            self.revive(component)
        for path, let_go in list(self._kept.items()):
            let_go.set()
            self._release(path)

    def _release(self, path: str) -> None:
        self._kept.pop(path, None)
        try:
            self._api.merge(path, {"metadata": {"finalizers": None}})
        except ApiError as error:
            if error.code != 404:
                raise


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
