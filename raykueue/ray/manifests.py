"""What a RayJob says differently on real Ray: an entrypoint that waits for its end, and the pinned Ray. Pure.

Everything else stays as its user wrote it; what was replaced is told, and is in the record of the test.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

REPOSITORY = "rayproject/ray"
"""Ray's own images, of which the pinned one is put in place of whatever version and variant a manifest names. Images of
others stay: a test about an image that can't be pulled names one."""

MARKER = "/tmp/raykueue-exit-code"  # noqa: S108 - in a container, where nobody else is
"""A FIFO in the container that runs the entrypoint. Its content is the exit code. Whoever comes first makes it, and
each waits in `open` for the other: nothing is polled, and who has written knows that it is read."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """One value of a manifest that is another on the cluster."""

    field: str
    """spec.entrypoint"""
    manifest: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A RayJob as it is created."""

    body: dict[str, Any]
    replaced: tuple[Replaced, ...] = ()


def on_real_ray(rayjob: Mapping[str, Any], ray_version: str) -> Prepared:
    """The RayJob for real Ray of this version. An interactive one has no entrypoint, and gets none."""
    body = copy.deepcopy(dict(rayjob))
    replaced = []
    for path, parent, key, wanted in _places(body["spec"], ray_version):
        if parent[key] != wanted:
            replaced.append(Replaced(path, str(parent[key]), wanted))
            parent[key] = wanted
    return Prepared(body, tuple(replaced))


def waiting(marker: str = MARKER) -> str:
    """An entrypoint that waits at the marker and ends with the exit code that it reads there.

    Two shells and `subprocess.list2cmdline` read it on its way: the submitter's (ray-operator
    controllers/ray/common/job.go:90-212@v1.6.2), `ray job submit` (ray python/ray/dashboard/modules/job/cli.py@2.52.0)
    and the one that Ray's job supervisor starts (job_supervisor.py:160@2.52.0); in HTTPMode only the last. So it is one
    argument in double quotes, with a space in it, and without any of $ ` \\ ! and ".
    """
    made = f"os.system('mkfifo {marker} 2>/dev/null')"
    return f"python3 -c \"import os; {made}; raise SystemExit(int(open('{marker}').read()))\""


def marked(exit_code: int, seconds: float, marker: str = MARKER) -> list[str]:
    """The command that gives the waiting entrypoint its exit code; ends with 124 if none reads it within `seconds`."""
    write = f"mkfifo {marker} 2>/dev/null; exec timeout {seconds:g} sh -c 'echo {exit_code} > {marker}'"
    return ["sh", "-c", write]


def _places(spec: dict[str, Any], ray_version: str) -> Iterator[tuple[str, dict[str, Any], str, str]]:
    """(path, object, key, value on real Ray) of everything that is replaced where it differs."""
    if "entrypoint" in spec:
        yield "spec.entrypoint", spec, "entrypoint", waiting()
    cluster = spec.get("rayClusterSpec", {})
    if "rayVersion" in cluster:
        yield "spec.rayClusterSpec.rayVersion", cluster, "rayVersion", ray_version
    for path, template in _templates(spec, cluster):
        pod = template.get("spec", {})
        for kind in ("initContainers", "containers"):
            for number, container in enumerate(pod.get(kind, ())):
                if str(container.get("image", "")).partition(":")[0] == REPOSITORY:
                    yield f"{path}.{kind}[{number}].image", container, "image", f"{REPOSITORY}:{ray_version}"


def _templates(spec: Mapping[str, Any], cluster: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if "headGroupSpec" in cluster:
        yield "spec.rayClusterSpec.headGroupSpec.template.spec", cluster["headGroupSpec"]["template"]
    for number, group in enumerate(cluster.get("workerGroupSpecs", ())):
        yield f"spec.rayClusterSpec.workerGroupSpecs[{number}].template.spec", group["template"]
    if "submitterPodTemplate" in spec:
        yield "spec.submitterPodTemplate.spec", spec["submitterPodTemplate"]
