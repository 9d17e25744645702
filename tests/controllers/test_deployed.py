from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from raykueue.clusters.protocol import ComponentSpec
from raykueue.controllers import deployed, kueue
from raykueue.controllers.rendered import Rendered
from raykueue.controllers.settings import Settings
from tests.controllers.shipped import obj

SHIPPED_CONFIG = """
leaderElection: {leaderElect: true}
integrations: {frameworks: ["batch/job", "pod"]}
"""


def pod(image: str, *args: str) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/readyz", "port": 8081}, "initialDelaySeconds": 5, "periodSeconds": 10}
    container = {
        "name": "manager",
        "image": image,
        "imagePullPolicy": "Always",
        "args": list(args),
        "readinessProbe": probe,
        "livenessProbe": {"initialDelaySeconds": 15},
        "env": [{"name": "KEPT", "value": "1"}],
    }
    return {"replicas": 3, "template": {"spec": {"containers": [container]}}}


@pytest.fixture
def kueues() -> Rendered:
    return Rendered(
        "kueue",
        [
            obj("Namespace", "kueue-system"),
            obj("ServiceAccount", kueue.ACCOUNT, "kueue-system"),
            obj("Secret", "kueue-webhook-server-cert", "kueue-system"),
            {**obj("ConfigMap", "kueue-manager-config"), "data": {deployed.CONFIG_FILE: SHIPPED_CONFIG}},
            obj("Service", "kueue-webhook-service", "kueue-system"),
            obj("Service", "kueue-visibility-server", "kueue-system"),
            obj("APIService", "v1beta2.visibility.kueue.x-k8s.io"),
            obj("Deployment", kueue.ACCOUNT, "kueue-system", spec=pod("staging/kueue:main", "--config=/c")),
        ],
    )


@pytest.fixture
def keys(tmp_path: Path) -> kueue.WebhookKeys:
    return kueue.WebhookKeys(tmp_path / "keys")


def container_of(spec: ComponentSpec) -> dict[str, Any]:
    [deployment] = [one for one in spec.deployed if one["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}, "never two at once: no leader is elected"
    container: dict[str, Any] = deployment["spec"]["template"]["spec"]["containers"][0]
    return container


def test_kueue_runs_the_pinned_image_with_the_suites_settings(kueues: Rendered, keys: kueue.WebhookKeys) -> None:
    settings = Settings(kueue_gates={"A": True}, kueue_config={"waitForPodsReady": {"timeout": "10s"}})
    spec = deployed.kueue_component("site/kueue:v0.19.2", "0.19.2", kueues, keys, settings)
    container = container_of(spec)
    assert (container["image"], container["imagePullPolicy"]) == ("site/kueue:v0.19.2", "IfNotPresent")
    assert container["args"] == [
        "--config=/c",
        "--feature-gates=A=true,DisableWaitForPodsReady=true,VisibilityOnDemand=false",
    ]
    [config_map] = [one for one in spec.deployed if one["kind"] == "ConfigMap"]
    config = json.loads(config_map["data"][deployed.CONFIG_FILE])
    assert config["leaderElection"]["leaderElect"] is False
    assert config["integrations"]["frameworks"] == list(kueue.FRAMEWORKS)
    assert config["waitForPodsReady"] == {"timeout": "10s"}


def test_nothing_is_deployed_that_nobody_serves(kueues: Rendered, keys: kueue.WebhookKeys) -> None:
    spec = deployed.kueue_component("site/kueue:v1", "0.19.2", kueues, keys)
    assert [one["kind"] for one in spec.deployed] == ["ConfigMap", "Service", "Deployment"]
    assert not [one for one in spec.objects if one["kind"] == "APIService"]
    [secret] = [one for one in spec.objects if one["kind"] == "Secret"]
    assert set(secret["data"]) == set(keys.files), "Kueue finds its keys there, and need not make and mount any"


def test_a_component_is_ready_as_soon_as_it_is(kueues: Rendered, keys: kueue.WebhookKeys) -> None:
    container = container_of(deployed.kueue_component("site/kueue:v1", "0.19.2", kueues, keys))
    assert "initialDelaySeconds" not in {**container["readinessProbe"], **container["livenessProbe"]}
    assert container["startupProbe"]["periodSeconds"] == 1
    assert container["startupProbe"]["httpGet"] == container["readinessProbe"]["httpGet"]
    shipped = kueues.one("Deployment", kueue.ACCOUNT)["spec"]["template"]["spec"]["containers"][0]
    assert shipped["readinessProbe"]["initialDelaySeconds"] == 5, "what is shipped is not changed"


def test_kuberay_keeps_the_image_that_its_manifests_name() -> None:
    operator = pod("site/operator:v1.6.2", "--feature-gates=B=true")
    shipped = Rendered(
        "kuberay",
        [
            obj("ServiceAccount", "kuberay-operator", "default"),
            obj("Service", "kuberay-operator", "default"),
            obj("Deployment", "kuberay-operator", "default", spec=operator),
        ],
    )
    settings = Settings(kuberay_gates={"A": False}, kuberay_env={"X": "y"})
    container = container_of(deployed.kuberay_component("", shipped, settings))
    assert container["image"] == "site/operator:v1.6.2"
    assert container["args"] == ["--feature-gates=A=false,B=true", "--enable-leader-election=false"]
    assert container["env"] == [{"name": "KEPT", "value": "1"}, {"name": "X", "value": "y"}]
