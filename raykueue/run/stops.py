"""How a test makes the containers of a RayJob's pods take long to stop once they are told to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from raykueue.clusters.embedded.kwok import STOP_ANNOTATION
from raykueue.clusters.protocol import Tier
from raykueue.errors import UsageError

DEFAULT_GRACE_SECONDS = 30
"""Of a pod that says nothing (k8s.io/api core/v1/types.go@v0.34.4)."""


def stop_slowly(rayjob: dict[str, Any], seconds: float, tier: Tier) -> None:
    """Changes the RayJob so that its pods take so long: simulated nodes are told by an annotation, and a kubelet runs a
    preStop hook that sleeps before Ray gets its SIGTERM, as a user who wants a graceful end has one.

    Raises:
        UsageError: they would be killed before; or the tier has whole seconds only.
    """
    for template in _templates(rayjob):
        grace = template["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
        if seconds > grace:
            raise UsageError(f"stops_after={seconds:g}: its pods are killed after {grace} s, their grace period")
        if tier == "control-plane":
            annotations = template.setdefault("metadata", {}).setdefault("annotations", {})
            annotations[STOP_ANNOTATION] = f"{seconds:g}s"
            continue
        if seconds != int(seconds):
            raise UsageError(f"stops_after={seconds:g}: a preStop hook sleeps whole seconds on tier {tier}")
        for container in template["spec"].get("containers", ()):
            container["lifecycle"] = {"preStop": {"sleep": {"seconds": int(seconds)}}}


def _templates(rayjob: dict[str, Any]) -> Sequence[dict[str, Any]]:
    cluster = rayjob["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster.get("workerGroupSpecs", ())]
    submitter = rayjob["spec"].get("submitterPodTemplate")
    return [group["template"] for group in groups] + ([submitter] if submitter else [])
