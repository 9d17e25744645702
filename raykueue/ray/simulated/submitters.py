"""How a submitter ends: the pod's status, as a kubelet would write it, patched through the API server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_fixed

from raykueue.kube.session import NO_ANSWER, ApiRefused, ApiSession
from raykueue.model.events import Object
from raykueue.ray.simulated.objects import Submitter, is_over

PATCH_S = 15.0
"""How long an end is tried for while the API server doesn't answer, or others write to the pod."""


async def end_submitter(api: ApiSession, submitter: Submitter, exit_code: int) -> bool:
    """Ends it; False if the pod is gone, replaced or over already.

    Raises:
        ApiRefused, NO_ANSWER: the API server did not take it for `PATCH_S`.
    """
    path = f"/api/v1/namespaces/{submitter.namespace}/pods/{submitter.pod}"
    async for attempt in AsyncRetrying(
        retry=retry_if_exception(_passing), stop=stop_after_delay(PATCH_S), wait=wait_fixed(0.1), reraise=True
    ):
        with attempt:
            try:
                pod = await api.get(path)
                if pod["metadata"]["uid"] != submitter.uid or is_over(pod):
                    return False
                await api.merge_patch(f"{path}/status", ended(pod, submitter.container, exit_code, datetime.now(UTC)))
            except ApiRefused as refused:
                if refused.status == 404:
                    return False
                raise
    return True


def ended(pod: Object, container: str, exit_code: int, at: datetime) -> dict[str, Any]:
    """The merge patch of a pod's status after the end of one container (empty: of all, and so of the pod).

    Lists are written whole, since a merge patch replaces them; the resourceVersion keeps it from undoing the write of
    another. A pod that runs on with an ended container is no longer Ready (pkg/kubelet/status/generate.go@v1.34.4).
    """
    moment = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    status = pod["status"]
    names = [entry["name"] for entry in pod["spec"]["containers"]]
    submitter = container or names[0]
    containers = [
        _terminated(entry, exit_code if entry["name"] == submitter else 0, moment)
        if container in ("", entry["name"])
        else entry
        for entry in status.get("containerStatuses", [])
    ]
    if container:
        why = {"reason": "ContainersNotReady", "message": f"containers with unready status: [{container}]"}
    else:
        why = {"reason": "PodCompleted" if exit_code == 0 else "PodFailed"}
    conditions = [
        {**entry, "status": "False", "lastTransitionTime": moment, **why}
        if entry["type"] in ("Ready", "ContainersReady")
        else entry
        for entry in status.get("conditions", [])
    ]
    body: dict[str, Any] = {"containerStatuses": containers, "conditions": conditions}
    if not container:
        body["phase"] = "Succeeded" if exit_code == 0 else "Failed"
    meta = pod["metadata"]
    return {"metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}, "status": body}


def _terminated(entry: Mapping[str, Any], exit_code: int, moment: str) -> dict[str, Any]:
    state = entry.get("state", {})
    if "terminated" in state:
        return dict(entry)
    return {
        **entry,
        "ready": False,
        "started": False,
        "state": {
            "terminated": {
                "exitCode": exit_code,
                "reason": "Completed" if exit_code == 0 else "Error",
                "startedAt": state.get("running", {}).get("startedAt", moment),
                "finishedAt": moment,
            }
        },
    }


def _passing(error: BaseException) -> bool:
    """It may go away: a conflict, an overloaded or absent server."""
    if isinstance(error, ApiRefused):
        return error.status == 409 or error.status == 429 or error.status >= 500
    return isinstance(error, NO_ANSWER)
