"""Ray's own job API, of the head of a RayCluster: through the API server's proxy to its pod."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from raykueue.errors import ClusterError
from raykueue.kube.client import Api, ApiError

PORT = 8265
"""Where the dashboard listens unless a container port of that name says otherwise (utils/constant.go@v1.6.2)."""
_PORT_NAME = "dashboard"
PATIENCE_SECONDS = 15.0
"""For a dashboard that has much to do; only questions are asked again, never what changes something."""
_AGAIN_SECONDS = 0.5
_UNREACHED = 503


class Dashboard:
    """The dashboard in one head pod. Paths are those of ray python/ray/dashboard/modules/job/job_head.py@2.52.0."""

    def __init__(self, api: Api, head: Mapping[str, Any]) -> None:
        metadata = head["metadata"]
        pod = f"http:{metadata['name']}:{_port(head)}"
        self._api = api
        self._base = f"/api/v1/namespaces/{metadata['namespace']}/pods/{pod}/proxy/api/jobs"

    def job(self, submission_id: str) -> dict[str, Any] | None:
        """Ray's JobDetails; None: it has no such job.

        Raises:
            ClusterError: the dashboard does not answer, though it was asked for some seconds.
        """
        asking = Retrying(
            retry=retry_if_exception(_was_not_reached),
            stop=stop_after_delay(PATIENCE_SECONDS),
            wait=wait_fixed(_AGAIN_SECONDS),
            reraise=True,
        )
        try:
            return asking(self._api.get, f"{self._base}/{submission_id}")
        except ApiError as error:
            if error.code == 404:
                return None
            raise ClusterError(f"Ray's dashboard does not answer: {error}") from error

    def stop(self, submission_id: str) -> bool:
        """Asks Ray to stop the job, as `ray job stop` does; False: it was over.

        Raises:
            ClusterError: the dashboard does not answer.
        """
        answer = self._api.request("POST", f"{self._base}/{submission_id}/stop")
        if "stopped" not in answer:
            raise ClusterError(f"Ray's dashboard answered {json.dumps(answer)[:200]} to a stop of {submission_id}")
        return bool(answer["stopped"])


def _was_not_reached(error: BaseException) -> bool:
    """The API server did not get through: above all the dashboard has just closed a connection that was kept open."""
    return isinstance(error, ApiError) and error.code == _UNREACHED


def _port(head: Mapping[str, Any]) -> int:
    ports = head["spec"]["containers"][0].get("ports", ())
    return next((int(port["containerPort"]) for port in ports if port.get("name") == _PORT_NAME), PORT)
