"""Components in a cluster, on a small API server that knows pods; what it doesn't know is played."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from raykueue.clusters import deployments as deployments_module
from raykueue.clusters.deployments import SETTINGS, Deployments, deployment_of, described, hopeless, stamped
from raykueue.clusters.protocol import ComponentSpec, Container
from raykueue.errors import ClusterError, ComponentDied
from tests.kube.fake_api import FakeApi


def spec(name: str = "kueue", argument: str = "--a") -> ComponentSpec:
    container = {"name": "manager", "image": "kueue:1", "args": [argument]}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "system"},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }
    return ComponentSpec(name, None, deployed=[deployment])


def digest(one: ComponentSpec) -> str:
    return str(stamped(one)["spec"]["template"]["metadata"]["annotations"][SETTINGS])


def pod(ready: bool = True, settings: str = "", **container: Any) -> dict[str, Any]:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    if container:
        status["containerStatuses"] = [{"name": "manager", "restartCount": 0, **container}]
    metadata = {"annotations": {SETTINGS: settings}, "creationTimestamp": "2026-11-05T10:15:02Z"}
    return {"metadata": metadata, "status": status}


def on_a_cluster(tmp_path: Path, test: Callable[[FakeApi, Deployments], Any]) -> Any:
    async def run() -> Any:
        async with FakeApi() as api:
            kubeconfig = tmp_path / "kubeconfig"
            named = {"name": "x"}
            kubeconfig.write_text(
                yaml.safe_dump(
                    {
                        "clusters": [{**named, "cluster": {"server": api.access.server}}],
                        "users": [{**named, "user": {"token": "t"}}],
                        "contexts": [{**named, "context": {"cluster": "x", "user": "x"}}],
                        "current-context": "x",
                    }
                )
            )
            return await test(api, Deployments(kubeconfig, [spec()]))

    return asyncio.run(run())


async def _watched(api: FakeApi) -> None:
    while not api.watching("Pod"):
        await asyncio.sleep(0.01)


def test_it_is_ready_when_one_pod_with_its_settings_is_and_the_old_one_is_gone(tmp_path: Path) -> None:
    async def test(api: FakeApi, deployments: Deployments) -> None:
        api.put("Pod", "old", "system", **pod(settings="others"))
        waiting = asyncio.create_task(asyncio.to_thread(deployments.wait_ready, "kueue"))
        await _watched(api)
        api.put("Pod", "new", "system", **pod(ready=False, settings=digest(spec())))
        api.put("Pod", "new", "system", **pod(settings=digest(spec())))
        await asyncio.sleep(0.1)  # nothing tells that it is still waiting
        assert not waiting.done(), "the old one is still there"
        api.remove("Pod", "old", "system")
        await asyncio.wait_for(waiting, 10)

    on_a_cluster(tmp_path, test)


def test_a_component_that_ends_again_and_again_is_told_at_once(tmp_path: Path) -> None:
    async def test(api: FakeApi, deployments: Deployments) -> None:
        crashed = {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}}
        api.put("Pod", "one", "system", **pod(ready=False, settings=digest(spec()), **crashed))
        with pytest.raises(
            ComponentDied, match=r"kueue does not start: pod one is Running, manager waiting \(CrashLoo"
        ):
            await asyncio.to_thread(deployments.wait_ready, "kueue")

    on_a_cluster(tmp_path, test)


def test_a_component_that_is_never_ready_is_told_with_its_pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployments_module, "READY_SECONDS", 0.2)

    async def test(api: FakeApi, deployments: Deployments) -> None:
        api.put("Pod", "one", "system", **pod(ready=False, settings=digest(spec())))
        with pytest.raises(ClusterError, match="kueue was not ready after 0 s: pod one is Running; the end of its log"):
            await asyncio.to_thread(deployments.wait_ready, "kueue")

    on_a_cluster(tmp_path, test)


def test_one_that_is_killed_has_no_pod_left_and_nobody_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scaled: list[int] = []
    monkeypatch.setattr(Deployments, "_scale", lambda _self, _name, replicas: scaled.append(replicas))

    async def test(api: FakeApi, deployments: Deployments) -> None:
        api.put("Pod", "one", "system", **pod(settings=digest(spec())))
        await asyncio.to_thread(deployments.kill, "kueue")
        assert api.names("Pod") == []
        assert deployments.expected_down == {"kueue"}
        api.put("Pod", "two", "system", **pod(settings=digest(spec())))
        await asyncio.to_thread(deployments.start, "kueue")
        assert deployments.expected_down == set()
        assert scaled == [0, 1]

    on_a_cluster(tmp_path, test)


def running(name: str, asked: str, runs: str | None, *, created: str = "2026-11-05T10:15:02Z", **metadata: Any) -> Any:
    statuses = [] if runs is None else [{"name": "manager", "image": runs, "restartCount": 0}]
    return {
        "metadata": {"name": name, "creationTimestamp": created, **metadata},
        "spec": {"containers": [{"name": "manager", "image": asked}]},
        "status": {"phase": "Running", "containerStatuses": statuses},
    }


class Pods:
    """An API server that knows these pods, and what they log."""

    def __init__(self, *pods: Any) -> None:
        self.pods = pods
        self.asked: list[str] = []

    def get(self, path: str, labelSelector: str) -> Any:  # noqa: N803 - as the API has it
        assert (path, labelSelector) == ("/api/v1/namespaces/system/pods", "app=kueue")
        return {"items": list(self.pods)}

    def text(self, path: str) -> str:
        self.asked.append(path)
        return "first\nsecond\n"


@pytest.fixture
def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Pods, Deployments]]:
    def make(*pods: Any) -> tuple[Pods, Deployments]:
        api = Pods(*pods)
        monkeypatch.setattr(deployments_module, "load_access", lambda _: None)
        monkeypatch.setattr(deployments_module, "Api", lambda _: api)
        return api, Deployments(tmp_path, [spec()])

    return make


def test_containers_are_those_of_pods_that_run_with_both_names_of_their_image(on: Any) -> None:
    pending = running("three", "kueue:3", None)
    pending["status"]["phase"] = "Pending"
    _, deployments = on(
        running("one", "kueue:1", "docker.io/library/kueue:1"),
        running("two", "kueue:2", None),
        pending,
        running("gone", "kueue:0", "kueue:0", deletionTimestamp="2026-11-05T10:15:03Z"),
    )
    assert deployments.containers("kueue") == [
        Container("one", "manager", "kueue:1", "docker.io/library/kueue:1"),
        Container("two", "manager", "kueue:2", ""),
    ]


def test_the_first_words_are_read_from_the_begin_of_the_newest_pods_log(on: Any) -> None:
    api, deployments = on(
        running("new", "kueue:1", "kueue:1", created="2026-11-05T10:15:09Z"), running("old", "kueue:1", "kueue:1")
    )
    assert deployments.first_words("kueue") == ["first", "second"]
    assert api.asked == ["/api/v1/namespaces/system/pods/new/log?container=manager&limitBytes=1048576"]


def test_who_does_not_run_has_said_nothing(on: Any) -> None:
    api, deployments = on()
    assert deployments.first_words("kueue") == []
    assert deployments.containers("kueue") == []
    assert api.asked == []


def test_new_settings_make_new_pods_and_the_same_ones_do_not() -> None:
    assert digest(spec()) == digest(spec())
    assert digest(spec()) != digest(spec(argument="--b"))
    assert SETTINGS not in deployment_of(spec())["spec"]["template"]["metadata"].get("annotations", {}), "as shipped"


def test_a_component_without_one_deployment_is_refused() -> None:
    with pytest.raises(ClusterError, match="ray has 0 Deployments, expected one"):
        deployment_of(ComponentSpec("ray", None))


def test_a_pod_is_described_in_one_line() -> None:
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    unplaced = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Insufficient cpu"}
    status = {
        "phase": "Pending",
        "conditions": [unplaced],
        "containerStatuses": [{"name": "manager", "restartCount": 2, "state": ended}],
    }
    assert described({"metadata": {"name": "one", "deletionTimestamp": "now"}, "status": status}) == (
        "pod one is Pending, told to go, 0/3 nodes are available: 3 Insufficient cpu, "
        "manager terminated (OOMKilled with code 137), manager started again 2 times"
    )


@pytest.mark.parametrize(
    ("reason", "expected"), [("ImagePullBackOff", True), ("ErrImagePull", False), ("ContainerCreating", False)]
)
def test_only_what_does_not_pass_is_hopeless(reason: str, expected: bool) -> None:
    assert hopeless(pod(ready=False, state={"waiting": {"reason": reason}})) is expected
