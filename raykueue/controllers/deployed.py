"""KubeRay and Kueue as Deployments: the pinned modules' own manifests, with what a run decides.

What changes: the image is the pinned release's; one replica, never two at once, so that no leader is elected; gates and
configuration are the same as where the controllers are processes; and they count as ready as soon as they are, which
the shipped probes notice up to 15 s later.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from raykueue.clusters.protocol import ComponentSpec, Manifest, ServiceAccount
from raykueue.controllers import kuberay, kueue
from raykueue.controllers.rendered import Rendered
from raykueue.controllers.settings import DEFAULT, Settings, gates_flag, merged

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
"""Label and taint of the node on which controllers run. So the others are whole: the guide's head asks for 2 CPU, which
is all that a node has on a machine of two cores; and no test that loses a node loses a controller with it."""
CONFIG_FILE = "controller_manager_config.yaml"
START_SECONDS = 180
"""After that long without an answer the kubelet starts a container again."""


def kueue_component(
    image: str, version: str, rendered: Rendered, keys: kueue.WebhookKeys, settings: Settings = DEFAULT
) -> ComponentSpec:
    """The manager, with the shipped configuration and what `settings` changes in it."""
    config_map = copy.deepcopy(dict(rendered.one("ConfigMap", "manager-config")))
    shipped = yaml.safe_load(config_map["data"][CONFIG_FILE])
    config = merged(kueue.suite_config(shipped), settings.kueue_config)
    config_map["data"][CONFIG_FILE] = json.dumps(merged(config, {"leaderElection": {"leaderElect": False}}), indent=1)
    deployment = rendered.one("Deployment", kueue.ACCOUNT)
    gates, others = kuberay.split_gates(_container(deployment).get("args", []))
    arguments = [*others, *gates_flag({**gates, **kueue.suite_gates(version), **settings.kueue_gates})]
    # Not the visibility API's, which is off: an APIService that nobody serves would hold up every namespace's deletion.
    services = [one for one in rendered.of("Service") if "visibility" not in one["metadata"]["name"]]
    return ComponentSpec(
        name="kueue",
        account=ServiceAccount(kueue.NAMESPACE, kueue.ACCOUNT),
        objects=kueue.objects(rendered, keys),
        webhooks=kueue.webhooks(rendered, keys),
        deployed=[config_map, *services, _adjusted(deployment, image, arguments)],
    )


def kuberay_component(image: str, rendered: Rendered, settings: Settings = DEFAULT) -> ComponentSpec:
    """The operator. `image`: empty for the one that its manifests name."""
    deployment = rendered.one("Deployment", kuberay.ACCOUNT)
    namespace = deployment["metadata"]["namespace"]
    gates, others = kuberay.split_gates(_container(deployment).get("args", []))
    arguments = [*others, *gates_flag({**gates, **settings.kuberay_gates}), "--enable-leader-election=false"]
    return ComponentSpec(
        name="kuberay",
        account=ServiceAccount(namespace, kuberay.ACCOUNT),
        objects=rendered.bound_rbac(kuberay.ACCOUNT),
        deployed=[*rendered.of("Service"), _adjusted(deployment, image, arguments, settings.kuberay_env)],
    )


def _adjusted(
    shipped: Manifest, image: str, arguments: Sequence[str], env: Mapping[str, str] | None = None
) -> Manifest:
    deployment = copy.deepcopy(dict(shipped))
    deployment["spec"] |= {"replicas": 1, "strategy": {"type": "Recreate"}}
    container = _container(deployment)
    if image:
        container["image"] = image
    container["imagePullPolicy"] = "IfNotPresent"
    container["args"] = list(arguments)
    pod = deployment["spec"]["template"]["spec"]
    pod["nodeSelector"] = {**pod.get("nodeSelector", {}), CONTROL_PLANE: ""}
    pod["tolerations"] = [*pod.get("tolerations", []), {"key": CONTROL_PLANE, "operator": "Exists"}]
    if env:
        changed = [one for one in container.get("env", []) if one["name"] not in env]
        container["env"] = [*changed, *({"name": name, "value": value} for name, value in env.items())]
    _ready_at_once(container)
    return deployment


def _ready_at_once(container: dict[str, Any]) -> None:
    probe = container.get("readinessProbe")
    if probe is None:
        return
    for name in ("readinessProbe", "livenessProbe"):
        container.get(name, {}).pop("initialDelaySeconds", None)
    often = {"periodSeconds": 1, "failureThreshold": START_SECONDS}
    container["startupProbe"] = {**{key: value for key, value in probe.items() if key != "failureThreshold"}, **often}


def _container(deployment: Manifest) -> dict[str, Any]:
    container: dict[str, Any] = deployment["spec"]["template"]["spec"]["containers"][0]
    return container
