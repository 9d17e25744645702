from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from raykueue.clusters.kind import bootstrap as bootstrap_module
from raykueue.clusters.kind.bootstrap import Bootstrap, without_cpu_requests
from raykueue.errors import ClusterError


def daemon_set(name: str, **requests: str) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": requests, "limits": {"cpu": "100m"}}}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": {"containers": [container]}}}}


class Api:
    def __init__(self) -> None:
        self.patched: list[tuple[str, Any]] = []
        self.ready = "ok"
        self.there: set[str] = set()

    def merge(self, path: str, patch: Any) -> None:
        self.patched.append((path, patch))

    def text(self, _path: str, seconds: float) -> str:
        assert seconds
        return self.ready

    def exists(self, path: str) -> bool:
        return path in self.there


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def bootstrap(tmp_path: Path, api: Any, monkeypatch: pytest.MonkeyPatch) -> Bootstrap:
    monkeypatch.setattr(bootstrap_module, "load_access", lambda _: None)
    nothing: Any = None
    bootstrap = Bootstrap(tmp_path, tmp_path / "kubeconfig", "raykueue-dev", nothing, nothing, lambda: None)
    bootstrap._client = api
    return bootstrap


def there(monkeypatch: pytest.MonkeyPatch, *looks: dict[str, Any], **more: dict[str, Any]) -> None:
    """What a wait sees, look by look, or of the kind that is named; after the last it times out."""

    def until(_access: Any, path: str, reached: Any, _seconds: float, **_: Any) -> Any:
        kind = path.rpartition("/")[2]
        for found in [more[kind]] if kind in more else looks:
            if (answer := reached(found)) is not None:
                return answer
        raise TimeoutError

    monkeypatch.setattr(bootstrap_module, "until", until)


def test_network_and_names_ask_for_no_cpu_as_soon_as_they_are_there(
    bootstrap: Bootstrap, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = daemon_set("kube-proxy", cpu="1")
    both = {"kube-proxy": proxy, "net": daemon_set("net", cpu="100m", memory="50Mi")}
    there(monkeypatch, {"kube-proxy": proxy}, both, deployments={"coredns": daemon_set("coredns", cpu="100m")})
    bootstrap.free_cpu()
    asked = {path: patch["spec"]["template"]["spec"]["containers"][0]["resources"] for path, patch in api.patched}
    where = "/apis/apps/v1/namespaces/kube-system"
    assert asked == {
        f"{where}/daemonsets/net": {"requests": {"cpu": "0", "memory": "50Mi"}, "limits": {"cpu": "100m"}},
        f"{where}/deployments/coredns": {"requests": {"cpu": "0"}, "limits": {"cpu": "100m"}},
    }


def test_gpus_are_claimed_once_every_worker_is_registered(
    bootstrap: Bootstrap, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = "raykueue-dev-worker", "raykueue-dev-worker2"
    there(monkeypatch, {first: {}})
    with pytest.raises(ClusterError, match=f"not all of {first}, {second} registered in 300 s"):
        bootstrap.claim_gpus()
    assert api.patched == []
    there(monkeypatch, {first: {}}, {first: {}, second: {}})
    bootstrap.claim_gpus()
    assert [path for path, _ in api.patched] == [f"/api/v1/nodes/{node}/status" for node in (first, second)]


def test_an_api_server_answers_once_its_administrator_has_rights(
    bootstrap: Bootstrap, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap_module, "Api", lambda _: api)
    monkeypatch.setattr(bootstrap_module, "plain_kubeconfig", lambda *_: None)
    driver: Any = SimpleNamespace(early_kubeconfig=lambda: "")
    bootstrap._driver = driver
    assert not bootstrap._answers()
    api.there.add("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubeadm:cluster-admins")
    assert bootstrap._answers()
    api.ready = "[-]poststarthook/rbac/bootstrap-roles failed"
    assert not bootstrap._answers()


def test_a_network_that_asks_for_none_is_left_alone(
    bootstrap: Bootstrap, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    there(monkeypatch, {"net": daemon_set("net", memory="50Mi")})
    bootstrap.free_cpu()
    assert api.patched == []
    assert not without_cpu_requests([{"name": "bare"}])


def test_a_cluster_without_a_network_is_told(bootstrap: Bootstrap, monkeypatch: pytest.MonkeyPatch) -> None:
    there(monkeypatch, {})
    with pytest.raises(ClusterError, match="raykueue-dev has no network after 300 s"):
        bootstrap.free_cpu()
