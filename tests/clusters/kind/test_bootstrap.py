from __future__ import annotations

from pathlib import Path
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

    def merge(self, path: str, patch: Any) -> None:
        self.patched.append((path.rpartition("/")[2], patch["spec"]["template"]["spec"]["containers"]))


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


def there(monkeypatch: pytest.MonkeyPatch, *looks: dict[str, Any]) -> None:
    """What a wait sees, look by look; after the last it times out."""

    def until(_access: Any, _path: str, reached: Any, _seconds: float, **_: Any) -> Any:
        for found in looks:
            if (answer := reached(found)) is not None:
                return answer
        raise TimeoutError

    monkeypatch.setattr(bootstrap_module, "until", until)


def test_the_network_asks_for_no_cpu_as_soon_as_it_is_there(
    bootstrap: Bootstrap, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = daemon_set("kube-proxy", cpu="1")
    there(
        monkeypatch, {"kube-proxy": proxy}, {"kube-proxy": proxy, "net": daemon_set("net", cpu="100m", memory="50Mi")}
    )
    bootstrap.free_cpu()
    (name, [container]), *_ = api.patched
    assert name == "net"
    assert container["resources"]["requests"] == {"cpu": "0", "memory": "50Mi"}
    assert container["resources"]["limits"] == {"cpu": "100m"}


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
