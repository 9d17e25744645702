"""Checks: what kind clusters with real Ray promise. Each that needs Docker starts a daemon of its own and ends it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from ci.acceptance.ground import Env, Ground, Miss, expect, until
from ci.airgap.machine import Machine
from raykueue.kube.access import load_access
from raykueue.kube.client import Api

INFRA = 3
KIND = ("--cluster", "kind")
SMOKE = ("suites/walkthrough", "suites/deletion_policy", "--profile", "smoke")
CONTRACT = ("suites/submission",)
NODES = ("suites/nodes", "--profile", "full")
ONE_TEST = "suites/walkthrough/test_deploy.py::test_a_deployed_job_succeeds"
LEFT_UP = "acceptance"
FIRST_TEST_SECONDS = 5.0
"""From the command to the first test's body, on a cluster that is up."""
BUILD_SECONDS = 3600.0
RUN_SECONDS = 3600.0
GONE_SECONDS = 60.0
"""For namespaces to be gone that were told to."""
_OURS = (
    "/api/v1/namespaces",
    "/apis/kueue.x-k8s.io/v1beta1/clusterqueues",
    "/apis/kueue.x-k8s.io/v1beta1/resourceflavors",
    "/apis/kueue.x-k8s.io/v1beta1/workloadpriorityclasses",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
)
"""Where a run on somebody's cluster makes objects that are in no namespace."""
_APART = {"not-applicable", "skipped"}


def without_the_extra_it_says_what_to_install(ground: Ground) -> str:
    """Exit code 3; as in a clone that was just set up."""
    ground.run("pip", "uninstall", "--yes", "pytest-kind-ng")
    try:
        outcome = ground.run("pytest", ONE_TEST, *KIND, code=INFRA, says="raykueue[kind]")
    finally:
        _install_the_extra(ground)
    return _only_line(outcome.text, "raykueue[kind]")


def a_docker_that_does_not_answer_is_told_in_one_line(ground: Ground) -> str:
    """Exit code 3, and what to do about it."""
    _install_the_extra(ground)
    nowhere = {"DOCKER_HOST": f"unix://{ground.temporary}/nobody.sock"}
    outcome = ground.run("pytest", ONE_TEST, *KIND, code=INFRA, says="Docker does not answer", env=nowhere)
    return _only_line(outcome.text, "Docker does not answer")


def make_test_needs_no_docker(ground: Ground) -> str:
    """The project's own tests, with a Docker that does not answer."""
    nowhere = {"DOCKER_HOST": f"unix://{ground.temporary}/nobody.sock"}
    return ground.run(".ci/run", patience=1800.0, env=nowhere).last_line


def everything_is_built_without_a_container_registry(ground: Ground) -> str:
    """`make kind-airgap`, and again from the cache."""
    with _as_it_was():
        try:
            first = ground.run("make", "kind-airgap", patience=BUILD_SECONDS)
            again = ground.run("make", "kind-airgap", patience=BUILD_SECONDS)
        finally:
            ground.run("ci/airgap/docker", "stop")
    return f"{first.seconds:.0f} s, and {again.seconds:.0f} s from the cache"


def the_smoke_profile_is_green_or_known_and_as_on_the_embedded_cluster(ground: Ground) -> str:
    """Walkthrough and deletion policies: the same verdict for each test that both tiers have."""
    ground.run("pytest", *SMOKE, patience=RUN_SECONDS)
    simulated = _verdicts(ground)
    with _daemon(ground) as docker:
        outcome = ground.run("pytest", *SMOKE, *KIND, patience=RUN_SECONDS, env=docker)
        real = _green(ground)
    both = {test for test in simulated.keys() & real.keys() if _APART.isdisjoint({simulated[test], real[test]})}
    other = [
        f"{test}: {simulated[test]}, on kind {real[test]}" for test in sorted(both) if simulated[test] != real[test]
    ]
    expect(both, "no test ran on both tiers")
    expect(not other, f"another verdict: {'; '.join(other)}")
    return f"{len(both)} tests with the same verdict on both, {outcome.seconds:.0f} s on kind"


def every_way_to_submit_keeps_one_contract_on_both_tiers(ground: Ground) -> str:
    """K8sJobMode, HTTPMode and SidecarMode, with real and with simulated Ray."""
    ground.run("pytest", *CONTRACT, patience=RUN_SECONDS)
    simulated = _green(ground)
    with _daemon(ground) as docker:
        ground.run("pytest", *CONTRACT, *KIND, patience=RUN_SECONDS, env=docker)
        real = _green(ground)
    expect(simulated == real, f"they differ: {simulated} and {real}")
    return f"{len(real)} tests"


def what_only_a_kubelet_can_answer_is_green_or_known(ground: Ground) -> str:
    """Hand-overs, images, memory, nodes; and on the embedded cluster they say that they need a node."""
    ground.run("pytest", *NODES, code=5, says="needs tier node")
    with _daemon(ground) as docker:
        outcome = ground.run("pytest", *NODES, *KIND, patience=RUN_SECONDS, env=docker)
        verdicts = _green(ground)
    return f"{len(verdicts)} tests in {outcome.seconds:.0f} s"


def a_cluster_left_up_has_its_first_test_within_seconds(ground: Ground) -> str:
    """`raykueue up --cluster kind`, and a run that attaches to it."""
    with _daemon(ground) as docker:
        up = ground.run("raykueue", "up", LEFT_UP, *KIND, "--kubeconfig", patience=RUN_SECONDS, env=docker)
        try:
            began = time.time()
            ground.run("pytest", ONE_TEST, *KIND, f"--reuse-cluster={LEFT_UP}", says="GREEN", env=docker)
            (record,) = _records(ground)
            _as_somebodys_own(ground, Path(up.last_line))
        finally:
            ground.run("raykueue", "down", LEFT_UP, env=docker)
    body = datetime.fromisoformat(record["started"]).timestamp() + record["phases"]["setup"] - began
    expect(body < FIRST_TEST_SECONDS, f"the test's body began after {body:.1f} s, expected {FIRST_TEST_SECONDS:g}")
    return f"up in {up.seconds:.0f} s; a test's body on it began after {body:.1f} s; the same test on it as existing"


def _as_somebodys_own(ground: Ground, kubeconfig: Path) -> None:
    """The same test by `--cluster existing`, which leaves there what it has found, and nothing else.

    Raises:
        Miss: it leaves something, or misses something afterwards.
    """
    api = Api(load_access(kubeconfig))

    def there() -> set[str]:
        return {
            f"{path.rpartition('/')[2]} {one['metadata']['name']}" for path in _OURS for one in api.get(path)["items"]
        }

    context = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["current-context"]
    somebodys = ("--cluster", "existing", "--context", context, "--kubeconfig", str(kubeconfig))
    until(lambda: not any("raykueue-" in one for one in there()), GONE_SECONDS)  # of the run before
    before = there()
    ground.run("pytest", ONE_TEST, *somebodys, says="GREEN")
    expect(until(lambda: there() == before, GONE_SECONDS), f"what is there differs by {there() ^ before}")


def after_kill_9_of_a_run_status_removes_its_nodes(ground: Ground) -> str:
    """Nodes, volumes and network, by what its folder says; and a run that is ended while nodes are made leaves none."""

    def there() -> set[str]:
        return {one for kind in ("container", "network", "volume") for one in _objects(docker, kind)}

    with _daemon(ground) as docker:
        had = there()  # the daemon makes a network of its own
        for moment in ("its nodes are being made", "its tests run"):
            run = ground.start("pytest", ONE_TEST, *KIND, env=docker)
            reached = (lambda: bool(_objects(docker, "container"))) if "made" in moment else ground.recording
            run.until(reached, moment, 600.0)
            run.send(signal.SIGKILL)
            ground.finish(run, -signal.SIGKILL)
            ground.run("raykueue", "status", says="cleaned up after", env=docker)
            left = sorted(there() - had)
            expect(not left, f"killed while {moment}, it left {', '.join(left)}")
    return "twice: while nodes were made, and at work"


@contextmanager
def _daemon(ground: Ground) -> Iterator[Env]:
    """A Docker daemon of its own with every image; afterwards it and all traces of it are gone.

    Raises:
        Miss: a container, network or volume is left in it; or the machine is not as it was.
    """
    _install_the_extra(ground)
    with _as_it_was():
        ground.run("ci/airgap/docker", "start", patience=BUILD_SECONDS)
        docker = _exported(ground.run("ci/airgap/docker", "env").text)
        before = {kind: set(_objects(docker, kind)) for kind in ("network", "volume")}
        try:
            yield docker
            left = _objects(docker, "container")
            left += [one for kind, had in before.items() for one in _objects(docker, kind) if one not in had]
            expect(not left, f"left in Docker: {', '.join(left)}")
        finally:
            ground.run("ci/airgap/docker", "stop", env=docker)


def _install_the_extra(ground: Ground) -> None:
    ground.run("pip", "install", "--quiet", "--editable", ".[kind]")


@contextmanager
def _as_it_was() -> Iterator[None]:
    """Rules of the packet filter, sysctls and network interfaces are afterwards what they were before."""
    before = Machine.look()
    yield
    expect(until(lambda: not before.differences(Machine.look()), 10.0), "; ".join(before.differences(Machine.look())))


def _exported(text: str) -> dict[str, str | Path]:
    lines = [shlex.split(line) for line in text.splitlines() if line.startswith("export ")]
    return {name: value for _, word in lines for name, _, value in [word.partition("=")]}


def _objects(docker: Env, kind: str) -> list[str]:
    """What a daemon has: `container x`, … Networks that every daemon has are left out."""
    listed = ["docker", kind, "ls", "--format", "{{.Names}}" if kind == "container" else "{{.Name}}"]
    listed += ["--all"] if kind == "container" else []
    environment = {**os.environ, **{key: str(value) for key, value in docker.items()}}
    found = subprocess.run(listed, env=environment, capture_output=True, text=True, timeout=30.0, check=False)
    if found.returncode != 0:
        raise Miss(f"`{' '.join(listed)}` says {found.stderr.strip()}")
    return [f"{kind} {name}" for name in found.stdout.split() if name not in ("bridge", "host", "none")]


def _green(ground: Ground) -> dict[str, str]:
    """Verdicts of the last run, none of them worse than known."""
    verdicts = _verdicts(ground)
    worse = [f"{test}: {verdict}" for test, verdict in verdicts.items() if verdict not in {"pass", "known", *_APART}]
    expect(not worse, "; ".join(worse))
    expect(set(verdicts.values()) - _APART, "nothing ran")
    return verdicts


def _verdicts(ground: Ground) -> dict[str, str]:
    return {record["id"]: record["verdict"] for record in _records(ground)}


def _records(ground: Ground) -> list[dict[str, Any]]:
    lines = (ground.root / "reports" / "latest" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if not record["id"].startswith("run::")]


def _only_line(text: str, part: str) -> str:
    """The line that says it, in an output without a traceback of ours."""
    lines = [line.strip().removeprefix("E ").strip() for line in text.splitlines() if part in line]
    expect("Traceback" not in text, "it shows a traceback")
    return min(lines, key=len)
