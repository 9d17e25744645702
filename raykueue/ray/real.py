"""Real Ray: entrypoints that wait are given their exit code through exec, and Ray is asked at its dashboard.

An entrypoint is a child of Ray's job supervisor, an actor that runs on the head's node, whoever submits the job: a K8s
Job, a sidecar, or KubeRay itself. Only a job that asks for resources of its own (entrypointNumCpus, …) may run on a
worker (ray python/ray/dashboard/modules/job/job_manager.py:412-460@2.52.0). Ray tells where it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from raykueue.errors import ClusterError, UsageError
from raykueue.kube.client import Api
from raykueue.kube.exec import Container, Exec
from raykueue.ray.dashboard import Dashboard
from raykueue.ray.manifests import Prepared, marked, on_real_ray
from raykueue.ray.pods import Located, locate

READ_SECONDS = 20.0
"""Between RUNNING and the first line of the entrypoint Ray starts a shell and Python, on a node that may be busy."""
_TIMED_OUT = 124
"""Exit code of `timeout`."""


class RealRay:
    """The Ray of a cluster whose pods are real. Safe in threads and forks: nothing is kept between calls."""

    def __init__(self, api: Api, run: Exec, ray_version: str) -> None:
        self._api = api
        self._run = run
        self._ray_version = ray_version

    def prepared(self, rayjob: Mapping[str, Any]) -> Prepared:
        """As `RayControl.prepared`: its entrypoint waits, and it runs the pinned Ray."""
        return on_real_ray(rayjob, self._ray_version)

    def finish(
        self,
        namespace: str,
        name: str,
        exit_code: int = 0,
        *,
        when_running: bool = False,
        after_read: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        """As `RayControl.finish`. Returns once the entrypoint has read its exit code; Ray looks at it every 0.1 s.

        `after_read`: a sidecar's processes stand still until it has returned. A submitter pod needs no such care, since
        it exits 0 whatever became of the job.

        Raises:
            UsageError: the job doesn't run; or `when_running`, since nothing can be put into a container in advance.
            InfraError: the entrypoint doesn't take it, or nothing can be run in its container.
        """
        if when_running:
            raise UsageError("real Ray can't be told in advance: wait until the job is Running, then finish it")
        job, details = self._running(namespace, name)
        container = job.driver(details)
        with self._standing_still(job.sidecar if after_read is not None else None):
            ran = self._run(container, marked(exit_code, READ_SECONDS), READ_SECONDS + 10.0)
            if ran.exit_code != 0:
                why = f"nobody read it within {READ_SECONDS:g} s" if ran.exit_code == _TIMED_OUT else ran.output[-300:]
                raise ClusterError(
                    f"{job.name}: its entrypoint in {container} did not take exit code {exit_code}: {why}"
                )
            if after_read is not None:
                after_read()
        return _told(job, details)

    def stop(self, namespace: str, name: str) -> dict[str, Any]:
        """As `RayControl.stop`, by Ray's own API; Ray gives the entrypoint 3 s after its SIGTERM."""
        job, details = self._running(namespace, name)
        if not Dashboard(self._api, job.head).stop(job.submission_id):
            raise UsageError(f"{job.name} has no running Ray job to stop: it has just ended")
        return _told(job, details)

    def state(self, namespace: str, name: str) -> dict[str, Any]:
        """As `RayControl.state`, with the name of the head pod. The state is the one at this moment."""
        job = locate(self._api, namespace, name)
        return _told(job, Dashboard(self._api, job.head).job(job.submission_id))

    def _running(self, namespace: str, name: str) -> tuple[Located, dict[str, Any]]:
        job = locate(self._api, namespace, name)
        details = Dashboard(self._api, job.head).job(job.submission_id)
        if details is None or details.get("status") != "RUNNING":
            found = details.get("status") if details is not None else "unknown to its cluster"
            raise UsageError(f"{job.name} has no running Ray job to end: Ray job {job.submission_id} is {found}")
        return job, details

    @contextlib.contextmanager
    def _standing_still(self, sidecar: Container | None) -> Iterator[None]:
        if sidecar is None:
            yield
            return
        self._signal(sidecar, "STOP")
        try:
            yield
        finally:
            self._signal(sidecar, "CONT")

    def _signal(self, container: Container, signal: str) -> None:
        # -1: every process of the container but the first, its shell, and the one that sends.
        ran = self._run(container, ["bash", "-c", f"kill -{signal} -1"])
        if ran.exit_code != 0:
            raise ClusterError(f"signal {signal} could not be sent in {container}: {ran.output[-300:]}")


def _told(job: Located, details: Mapping[str, Any] | None) -> dict[str, Any]:
    about = details or {}
    times = {"submitted": about.get("start_time"), "ended": about.get("end_time")}
    return {
        "submission_id": job.submission_id,
        "status": about.get("status"),
        "message": about.get("message"),
        "head": job.head["metadata"]["name"],
        "times": {what: time for what, time in times.items() if time},
    }
