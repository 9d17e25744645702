"""What a version can do, as data: tests ask for a gate, never for a version.

A range is half open: from `since` on, before `before`. A fix that was picked into older minors has a range for each.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Product: TypeAlias = Literal["kueue", "kuberay", "kubernetes"]

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(-[0-9A-Za-z.-]+)?")


@dataclass(frozen=True, slots=True)
class Range:
    """From a version on, before another. An empty end is open."""

    since: str = ""
    before: str = ""

    def __contains__(self, version: object) -> bool:
        here = _parse(str(version))
        return (not self.since or _parse(self.since) <= here) and (not self.before or here < _parse(self.before))

    def __str__(self) -> str:
        parts = [f">= {self.since}" if self.since else "", f"< {self.before}" if self.before else ""]
        return " and ".join(p for p in parts if p) or "any version"


@dataclass(frozen=True, slots=True)
class Gate:
    """One thing that some versions of a product do and others don't."""

    name: str
    product: Product
    ranges: tuple[Range, ...]
    source: str
    consequence: str

    def open_for(self, pair: Mapping[str, str]) -> bool:
        """The pair has it. Raises ValueError if the pair doesn't say the product's version, or says no version."""
        if self.product not in pair:
            raise ValueError(
                f"gate {self.name}: the pair {dict(pair)} doesn't say which {self.product}; add its version"
            )
        return within(pair[self.product], self.ranges)

    def refusal(self, pair: Mapping[str, str]) -> str:
        """Why a test that needs it is not applicable to the pair."""
        wanted = " or ".join(str(r) for r in self.ranges)
        return f"{self.name} needs {self.product} {wanted}, this is {pair[self.product]}: {self.consequence}"


def within(version: str, ranges: tuple[Range, ...]) -> bool:
    """The version is in one of the ranges; no ranges are no restriction."""
    return not ranges or any(version in one for one in ranges)


@functools.cache
def _parse(version: str) -> tuple[int, int, int, int]:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"not a version: {version!r}; write it as 0.19.2")
    major, minor, patch, before_release = match.groups()
    return int(major), int(minor), int(patch or 0), -1 if before_release else 0


def _from(*since: str) -> tuple[Range, ...]:
    """From each of these on: all but the last end with their minor."""
    ends = [f"{int(v.split('.')[0])}.{int(v.split('.')[1]) + 1}.0-0" for v in since[:-1]]
    return tuple(Range(start, end) for start, end in zip(since, [*ends, ""], strict=True))


GATES: tuple[Gate, ...] = (
    Gate(
        "submitter-pod-set",
        "kueue",
        _from("0.10.0"),
        "kueue pkg/controller/jobs/rayjob/rayjob_controller.go:148@v0.10.6 (#3729)",
        "in K8sJobMode the submitter pod is charged, in a PodSet of its own",
    ),
    Gate(
        "sidecar-submitter-charged",
        "kueue",
        _from("0.17.7", "0.18.3", "0.19.0"),
        "kueue pkg/controller/jobs/rayjob/rayjob_controller.go:345@v0.17.8, :314@v0.19.2 (#12725, #12726, #12454)",
        "in SidecarMode the submitter's container is charged with the head",
    ),
    Gate(
        "redis-cleanup-charged",
        "kueue",
        _from("0.17.6", "0.18.2", "0.19.0"),
        "kueue pkg/controller/jobs/raycluster/common.go:78@v0.17.8, :93@v0.19.2 (#11260, #12395)",
        "the Redis clean-up pod is charged within the head",
    ),
    Gate(
        "autoscaler-sidecar-charged",
        "kueue",
        _from("0.19.0"),
        "kueue pkg/controller/jobs/raycluster/common.go:98-107, :153-190@v0.19.2 (#12405)",
        "the autoscaler's container is charged with the head",
    ),
    Gate(
        "default-submitter-placed",
        "kueue",
        _from("0.17.7", "0.18.3", "0.19.0"),
        "kueue pkg/controller/jobs/rayjob/rayjob_controller.go@v0.19.2",
        "a submitter without a template of its own carries its flavor's labels and tolerations",
    ),
    Gate(
        "v1beta2",
        "kueue",
        _from("0.15.0"),
        "kueue apis/kueue/v1beta2@v0.15.0",
        "the API is served as v1beta2; before, only v1beta1 is",
    ),
    Gate(
        "wait-for-pods-ready-default",
        "kueue",
        _from("0.19.0"),
        "kueue apis/config/v1beta2/defaults.go:99-117@v0.19.2",
        "a job whose pods are not ready in time is evicted unless the configuration says otherwise",
    ),
    Gate(
        "pod-set-label",
        "kueue",
        _from("0.12.0"),
        "kueue pkg/controller/jobframework/reconciler.go:1319@v0.14.0",
        "every pod carries the name of its PodSet",
    ),
    Gate(
        "finished-child-suspended",
        "kueue",
        (Range("0.15.0", "0.15.3"), Range("0.15.4", "0.16.0-0"), Range("0.16.1")),
        "kueue pkg/controller/jobframework/reconciler.go:722@v0.15.8, :790@v0.16.9, :766-788, :848-863@v0.19.2",
        "the RayCluster of a RayJob that has finished is suspended, head and all, at its next event",
    ),
    Gate(
        "invalid-job-on-hold",
        "kueue",
        _from("0.18.5", "0.19.1"),
        "kueue pkg/controller/jobs/rayjob/rayjob_controller.go:213@v0.18.6, :218@v0.19.2 (#14194, #14192)",
        "a RayJob that is admitted and then found invalid gives its quota back; before, it keeps it",
    ),
    Gate(
        "sidecar-mode",
        "kuberay",
        _from("1.5.0"),
        "kuberay ray-operator/apis/ray/v1/rayjob_types.go@v1.5.1",
        "the submitter can be a container of the head pod",
    ),
    Gate(
        "validation-failed",
        "kuberay",
        _from("1.5.0"),
        "kuberay ray-operator/apis/ray/v1/rayjob_types.go@v1.5.1",
        "an invalid RayJob says ValidationFailed in its status; before, it stays without one",
    ),
    Gate(
        "legacy-deletion-policy",
        "kuberay",
        (Range("1.3.0", "1.5.0-0"),),
        "kuberay ray-operator/controllers/ray/utils/validation.go:210-211@v1.4.2",
        "what is deleted after a job is said by spec.deletionPolicy, behind the gate RayJobDeletionPolicy",
    ),
    Gate(
        "deletion-strategy",
        "kuberay",
        _from("1.5.0"),
        "kuberay ray-operator/apis/ray/v1/rayjob_types.go@v1.5.1",
        "what is deleted after a job is said by spec.deletionStrategy, for success and failure",
    ),
    Gate(
        "deletion-strategy-default",
        "kuberay",
        _from("1.6.0"),
        "kuberay ray-operator/pkg/features/features.go:65@v1.6.2",
        "spec.deletionStrategy works without setting the gate RayJobDeletionPolicy",
    ),
    Gate(
        "deletion-rule-on-failed",
        "kuberay",
        _from("1.6.0"),
        "kuberay ray-operator/apis/ray/v1/rayjob_types.go:159-161@v1.6.2 (kuberay#4262)",
        "a deletion rule can have jobDeploymentStatus Failed as its condition",
    ),
)

BY_NAME: dict[str, Gate] = {gate.name: gate for gate in GATES}


def gate(name: str) -> Gate:
    """The gate of that name. Raises KeyError that lists all names."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise KeyError(f"no gate {name!r}; there are: {', '.join(sorted(BY_NAME))}") from None
