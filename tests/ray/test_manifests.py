"""What a RayJob says differently on real Ray; and that a waiting entrypoint survives every shell on its way."""

from __future__ import annotations

import copy
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykueue.ray.manifests import Replaced, marked, on_real_ray, waiting
from raykueue.run.manifests import load_one

RAY = "2.52.0"
MANIFESTS = ["rayjob.yaml", "rayjob-http.yaml", "rayjob-sidecar.yaml", "rayjob-ttl.yaml", "guide/rayjob.yaml"]

words = st.text(st.characters(codec="ascii"), max_size=8)
scalars = st.one_of(words, st.integers(0, 9), st.booleans())
objects = st.dictionaries(st.sampled_from(["name", "ttl", "resources", "env"]), scalars, max_size=3)
images = st.sampled_from(["rayproject/ray:2.46.0-gpu", "rayproject/ray", "rayproject/ray-ml:2.9", "busybox:1", ""])
containers = st.lists(st.builds(lambda body, image: {**body, "image": image}, objects, images), max_size=3)
templates = st.builds(
    lambda body, first, init: {"spec": {**body, "containers": first, "initContainers": init}},
    objects,
    containers,
    containers,
)


@st.composite
def rayjobs(draw: st.DrawFn) -> dict[str, Any]:
    spec: dict[str, Any] = {**draw(objects), "entrypoint": draw(words)}
    cluster: dict[str, Any] = {"headGroupSpec": {"template": draw(templates)}, "rayVersion": draw(words)}
    cluster["workerGroupSpecs"] = [
        {**draw(objects), "template": draw(templates)} for _ in range(draw(st.integers(0, 2)))
    ]
    if draw(st.booleans()):
        spec["submitterPodTemplate"] = draw(templates)
    return {"metadata": {"name": draw(words)}, "spec": {**spec, "rayClusterSpec": cluster}}


@given(rayjobs())
def test_exactly_what_is_told_is_replaced(rayjob: dict[str, Any]) -> None:
    before = copy.deepcopy(rayjob)
    prepared = on_real_ray(rayjob, RAY)
    assert rayjob == before
    back = copy.deepcopy(prepared.body)
    for one in prepared.replaced:
        assert value_at(back, one.field) == one.cluster != one.manifest
        value_at(back, one.field, one.manifest)
    assert back == before


@given(rayjobs())
def test_the_second_time_nothing_is_left_to_replace(rayjob: dict[str, Any]) -> None:
    once = on_real_ray(rayjob, RAY)
    assert on_real_ray(once.body, RAY).replaced == ()
    assert once.body["spec"]["entrypoint"] == waiting()
    assert once.body["spec"]["rayClusterSpec"]["rayVersion"] == RAY
    images = [container["image"] for container in containers_of(once.body)]
    assert not [
        image for image in images if image.partition(":")[0] == "rayproject/ray" and image != f"rayproject/ray:{RAY}"
    ]


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_a_manifest_of_ours_differs_by_its_entrypoint_and_the_pinned_ray_only(manifest: str) -> None:
    rayjob = load_one(manifest, "RayJob")
    fields = {one.field.rpartition(".")[2] for one in on_real_ray(rayjob, "9.9.9").replaced}
    assert fields == {"entrypoint", "rayVersion", "image"}
    same_ray = on_real_ray(rayjob, rayjob["spec"]["rayClusterSpec"]["rayVersion"]).replaced
    assert Replaced("spec.entrypoint", rayjob["spec"]["entrypoint"], waiting()) in same_ray


def test_an_interactive_job_has_no_entrypoint_and_gets_none() -> None:
    rayjob = {"spec": {"submissionMode": "InteractiveMode", "rayClusterSpec": {}}}
    assert on_real_ray(rayjob, RAY).body == rayjob


def test_a_job_on_somebody_elses_cluster_only_waits() -> None:
    prepared = on_real_ray({"spec": {"entrypoint": "python train.py", "clusterSelector": {"a": "b"}}}, RAY)
    assert prepared.replaced == (Replaced("spec.entrypoint", "python train.py", waiting()),)


def test_the_submitters_shell_and_list2cmdline_leave_it_as_it_is() -> None:
    # As the submitter does (job.go: `ray job submit … -- ENTRYPOINT ;` in bash -c), and then `ray job submit`.
    shell = subprocess.run(
        ["bash", "-ce", f"printf '%s\\0' {waiting()}"], check=True, capture_output=True, text=True, timeout=10
    )
    arguments = shell.stdout.split("\0")[:-1]
    assert len(arguments) == 3
    assert subprocess.list2cmdline(arguments) == waiting()


@pytest.mark.parametrize("exit_code", [0, 1, 137, 255])
@pytest.mark.parametrize("marked_first", [True, False])
def test_it_ends_with_the_exit_code_that_it_is_given_whoever_comes_first(
    tmp_path: Path, exit_code: int, marked_first: bool
) -> None:
    marker = str(tmp_path / "marker")
    commands = [["sh", "-c", waiting(marker)], marked(exit_code, 10, marker)]
    started = [subprocess.Popen(command) for command in (reversed(commands) if marked_first else commands)]
    first, second = (process.wait(20) for process in started)
    assert sorted([first, second]) == sorted([0, exit_code])
    assert (second if marked_first else first) == exit_code


def test_whoever_gives_an_exit_code_that_nobody_reads_is_told_so(tmp_path: Path) -> None:
    assert subprocess.run(marked(0, 0.2, str(tmp_path / "marker")), timeout=20, check=False).returncode == 124


def test_a_stopped_entrypoint_goes_at_once(tmp_path: Path) -> None:
    process = subprocess.Popen(["sh", "-c", f"exec {waiting(str(tmp_path / 'marker'))}"])
    process.terminate()
    assert process.wait(10) != 0


def value_at(body: Any, path: str, new: str | None = None) -> Any:
    """The value at spec.a.b[0].c; or puts `new` there."""
    *parents, last = path.replace("[", ".").replace("]", "").split(".")
    for key in parents:
        body = body[int(key)] if isinstance(body, list) else body[key]
    if new is not None:
        body[last] = new
    return body[last]


def containers_of(rayjob: dict[str, Any]) -> list[dict[str, Any]]:
    spec = rayjob["spec"]
    cluster = spec["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    found = [group["template"]["spec"] for group in groups]
    found += [spec["submitterPodTemplate"]["spec"]] if "submitterPodTemplate" in spec else []
    return [one for pod in found for kind in ("containers", "initContainers") for one in pod[kind]]
