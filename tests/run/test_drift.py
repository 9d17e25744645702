from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from raykueue.clusters.protocol import ComponentSpec, Container
from raykueue.errors import Drifted
from raykueue.kube.client import Api, ApiError
from raykueue.model.node_images import Nodes, own_image
from raykueue.run import live as live_module
from raykueue.run.detected import Detected, detect, features_said
from raykueue.run.drift import Shipped, drift, gate_differences, refusal
from raykueue.toolchain.buildinfo import Module
from raykueue.toolchain.lock import load_versions
from raykueue.toolchain.recipe import PROGRAMS

VERSIONS = load_versions()
PAIR = VERSIONS.default
PODS = {"maxItems": 18, "items": {"description": "a pod set"}}
STRATEGY: dict[str, Any] = {
    "deletionRules": {"items": {"properties": {"condition": {"properties": {"jobDeploymentStatus": {}}}}}}
}
RAYJOB = {
    "spec": {"properties": {"deletionStrategy": {"properties": STRATEGY}, "preRunningDeadlineSeconds": {}}},
    "status": {"properties": {"rayJobInfo": {}}},
}


def crd(name: str, versions: list[str], schema: dict[str, Any]) -> dict[str, Any]:
    served = [{"name": one, "served": True, "schema": {"openAPIV3Schema": {"properties": schema}}} for one in versions]
    return {"metadata": {"name": name}, "spec": {"group": name.partition(".")[2], "versions": served}}


CRDS = [
    crd("workloads.kueue.x-k8s.io", ["v1beta1", "v1beta2"], {"spec": {"properties": {"podSets": PODS}}}),
    crd("cohorts.kueue.x-k8s.io", ["v1beta1", "v1beta2"], {"spec": {}}),
    crd("rayjobs.ray.io", ["v1"], RAYJOB),
    crd("rayclusters.ray.io", ["v1"], {"spec": {"properties": {"authOptions": {}}}}),
]
ON = [
    "WorkloadValidateResourcesAreNonNegative",
    "AssignQueueLabelsForPods",
    "ValidateRayAndSparkJobUpdates",
    "ElasticJobsViaWorkloadSlices",
    "SchedulingEquivalenceHashing",
    "DisableWaitForPodsReady",
    "FinishOrphanedWorkloads",
]


WEBHOOKS = ["mrayjob.kb.io", "mrayservice.kb.io"]


def pinned() -> Detected:
    """Everything as it was pinned."""
    programs = {}
    for name, program in PROGRAMS.items():
        if program.use == "embedded" and name != "kustomize":
            release = VERSIONS.release_for(program.product, PAIR)
            programs[name] = {release.module: Module(release.tag, release.checksum)}
    features = {
        "kueue": dict.fromkeys(ON, True),
        "kuberay": {"RayJobDeletionPolicy": True, "RayMultiHostIndexing": True},
    }
    crds = {one["metadata"]["name"]: copy.deepcopy(one["spec"]) for one in CRDS}
    return Detected(f"v{PAIR.kubernetes}", crds, programs, features, webhooks=frozenset(WEBHOOKS))


IMAGES = {"kueue": "registry.k8s.io/kueue/kueue:v0.19.2", "kuberay": "quay.io/kuberay/operator:v1.6.2"}


def deployed(name: str) -> ComponentSpec:
    pod = {"spec": {"containers": [{"name": "manager", "image": IMAGES[name]}]}}
    return ComponentSpec(name, None, deployed=[{"kind": "Service"}, {"kind": "Deployment", "spec": {"template": pod}}])


DEPLOYED = [deployed(name) for name in IMAGES]


def pinned_in_pods() -> Detected:
    """The same where components run in pods."""
    containers = {name: [Container(f"{name}-1", "manager", image, image)] for name, image in IMAGES.items()}
    kubelets = dict.fromkeys(["control-plane", "worker"], f"v{PAIR.kubernetes}")
    return replace(pinned(), programs=None, containers=containers, kubelets=kubelets)


def found(detected: Detected) -> list[str]:
    components = [] if detected.programs is not None else DEPLOYED
    return drift(detected, PAIR, VERSIONS, Shipped(CRDS, components))


def test_what_was_pinned_does_not_drift() -> None:
    assert found(pinned()) == []
    assert found(pinned_in_pods()) == []


def test_what_the_api_server_leaves_out_is_no_difference() -> None:
    detected = pinned()
    schema = detected.crds["rayjobs.ray.io"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["preRunningDeadlineSeconds"] = {"nullable": False, "description": ""}
    assert found(detected) == []


def other_kubernetes(detected: Detected) -> Detected:
    return replace(detected, kubernetes="v1.33.0")


def other_program(detected: Detected) -> Detected:
    kueue = {"sigs.k8s.io/kueue": Module("v0.18.3", "h1:other=")}
    return replace(detected, programs={**(detected.programs or {}), "kueue": kueue})


def same_version_other_content(detected: Detected) -> Detected:
    kueue = {"sigs.k8s.io/kueue": Module("v0.19.2", "h1:other=")}
    return replace(detected, programs={**(detected.programs or {}), "kueue": kueue})


def foreign_program(detected: Detected) -> Detected:
    return replace(detected, programs={**(detected.programs or {}), "kuberay": {}})


def program_missing(detected: Detected) -> Detected:
    return replace(detected, programs={k: v for k, v in (detected.programs or {}).items() if k != "etcd"})


def crd_missing(detected: Detected) -> Detected:
    return replace(detected, crds={k: v for k, v in detected.crds.items() if k != "cohorts.kueue.x-k8s.io"})


def crd_changed(detected: Detected) -> Detected:
    pods = detected.crds["workloads.kueue.x-k8s.io"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]
    pods["spec"]["properties"]["podSets"]["items"]["description"] = "something else"
    return detected


def crd_version_more(detected: Detected) -> Detected:
    detected.crds["rayjobs.ray.io"]["versions"].append({"name": "v2", "served": True})
    return detected


def crd_of_ours_more(detected: Detected) -> Detected:
    return replace(detected, crds={**detected.crds, "raycronjobs.ray.io": {"group": "ray.io"}})


def feature_off(detected: Detected) -> Detected:
    kuberay = {**detected.features["kuberay"], "RayJobDeletionPolicy": False}
    return replace(detected, features={**detected.features, "kuberay": kuberay})


def log_silent(detected: Detected) -> Detected:
    return replace(detected, features={"kuberay": detected.features["kuberay"]})


def runs(detected: Detected, image: str, runs: str) -> Detected:
    container = Container("kueue-1", "manager", image, runs)
    return replace(detected, containers={**detected.containers, "kueue": [container]})


def other_image(detected: Detected) -> Detected:
    return runs(detected, "registry.k8s.io/kueue/kueue:v0.18.3", "registry.k8s.io/kueue/kueue:v0.18.3")


def image_moved(detected: Detected) -> Detected:
    return runs(detected, IMAGES["kueue"], "sha256:0123456789abcdef")


def image_unknown(detected: Detected) -> Detected:
    return runs(detected, IMAGES["kueue"], "")


def second_pod_is_old(detected: Detected) -> Detected:
    old = Container("kuberay-0", "manager", "quay.io/kuberay/operator:v1.5.1", "quay.io/kuberay/operator:v1.5.1")
    return replace(detected, containers={**detected.containers, "kuberay": [*detected.containers["kuberay"], old]})


def no_pod(detected: Detected) -> Detected:
    return replace(detected, containers={**detected.containers, "kuberay": []})


def one_old_kubelet(detected: Detected) -> Detected:
    return replace(detected, kubelets={**detected.kubelets, "worker": "v1.33.1"})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (one_old_kubelet, "the kubelet of node worker says v1.33.1, pinned is v1.34.4"),
        (
            other_image,
            r"container manager in pod kueue-1 asks for image \S+:v0.18.3 and runs \S+:v0.18.3, pinned is \S+:v0.19.2$",
        ),
        (image_moved, "asks for image registry.k8s.io/kueue/kueue:v0.19.2 and runs sha256:0123456789abcdef, pinned is"),
        (image_unknown, "and runs one without a name, pinned is registry.k8s.io/kueue/kueue:v0.19.2"),
        (second_pod_is_old, "kuberay's container manager in pod kuberay-0 asks for image .*:v1.5.1"),
        (no_pod, "no container manager of kuberay runs, pinned is image quay.io/kuberay/operator:v1.6.2"),
        (feature_off, "gate deletion-strategy-default: kuberay 1.6.2 has it by its range, but .* is not there"),
        (log_silent, "the log of kueue does not say which feature gates are on"),
    ],
)
def test_whatever_differs_in_pods_is_told_in_one_sentence(change: Callable[[Detected], Detected], told: str) -> None:
    differences = found(change(pinned_in_pods()))
    assert len(differences) == 1
    with pytest.raises(Drifted, match=told):
        raise refusal(differences)


def test_an_image_by_another_spelling_and_a_container_that_others_added_are_no_difference() -> None:
    ours = Container("kueue-1", "manager", IMAGES["kueue"], f"{IMAGES['kueue']}@sha256:ab")
    added = Container("kueue-1", "proxy", "example.org/proxy:1", "example.org/proxy:1")
    detected = pinned_in_pods()
    assert found(replace(detected, containers={**detected.containers, "kueue": [ours, added]})) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (other_kubernetes, "the API server says v1.33.0, pinned is v1.34.4"),
        (other_program, "kueue was built from v0.18.3 h1:other= of sigs.k8s.io/kueue, pinned is v0.19.2"),
        (same_version_other_content, "kueue was built from v0.19.2 h1:other="),
        (foreign_program, "kuberay was built from something else of github.com/ray-project/kuberay"),
        (program_missing, "no program etcd runs, pinned is etcd 3.6.8"),
        (crd_missing, "CRD cohorts.kueue.x-k8s.io is not there"),
        (crd_changed, r"CRD workloads.* differs from the pinned one at versions.*podSets.items.description"),
        (crd_version_more, "CRD rayjobs.ray.io differs from the pinned one at versions"),
        (crd_of_ours_more, "CRD raycronjobs.ray.io is there, and was not installed"),
        (feature_off, "gate deletion-strategy-default: kuberay 1.6.2 has it by its range, but .* is not there"),
        (log_silent, "the log of kueue does not say which feature gates are on"),
    ],
)
def test_whatever_differs_is_told_in_one_sentence(change: Callable[[Detected], Detected], told: str) -> None:
    differences = found(change(pinned()))
    assert len(differences) == 1
    with pytest.raises(Drifted, match=told):
        raise refusal(differences)


def test_crds_of_others_are_none_of_ours() -> None:
    detected = pinned()
    assert found(replace(detected, crds={**detected.crds, "x.example.org": {"group": "example.org"}})) == []


def test_programs_are_not_looked_for_where_components_run_in_pods_and_images_not_where_they_are_processes() -> None:
    assert found(pinned_in_pods()) == []
    assert found(replace(pinned(), kubelets={}, containers={})) == []


def theirs() -> Detected:
    """Somebody else's cluster, whose controllers' logs we may read."""
    return replace(pinned(), programs=None)


def found_there(detected: Detected) -> list[str]:
    return drift(detected, PAIR, VERSIONS, None)


def test_what_somebody_else_installed_was_never_pinned() -> None:
    for detected in (theirs(), crd_changed(crd_of_ours_more(theirs())), replace(theirs(), features={})):
        assert found_there(detected) == []


@pytest.mark.parametrize("build", ["v1.34.4-eks-1a2b3c", "v1.34.4+k3s1", "v1.34.4-gke.1234000"])
def test_a_vendors_build_is_the_version_that_it_says_and_ours_has_no_vendor(build: str) -> None:
    assert found_there(replace(theirs(), kubernetes=build)) == []
    assert found(replace(pinned_in_pods(), kubernetes=build)) == [f"the API server says {build}, pinned is v1.34.4"]


def test_another_api_server_than_the_one_that_was_asked_first_is_told_there_too() -> None:
    [told] = found_there(replace(theirs(), kubernetes="v1.34.40-eks-1a2b3c"))
    assert told == "the API server says v1.34.40, pinned is v1.34.4"


def test_a_feature_gate_that_somebody_switched_off_is_told_there_too() -> None:
    [told] = found_there(feature_off(theirs()))
    assert told.startswith("gate deletion-strategy-default: kuberay 1.6.2 has it by its range, but")


def test_a_wrong_range_is_told_in_both_directions() -> None:
    newer = list(gate_differences(pinned().seen, {"kueue": "0.14.0", "kuberay": "1.6.2"}))
    assert any("kueue 0.14.0 does not have it by its range, but" in one and one.endswith("is there") for one in newer)
    older = list(gate_differences(replace(pinned(), crds={}, features={"kueue": {}}).seen, PAIR.versions()))
    assert older
    assert all(one.endswith("is not there") for one in older)


@pytest.mark.parametrize("ours", [True, False])
def test_a_run_compares_images_and_nodes_of_a_cluster_that_is_ours(ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    detected = one_old_kubelet(other_image(pinned_in_pods()))
    monkeypatch.setattr(live_module, "detect", lambda *_: detected)
    monkeypatch.setattr(live_module, "load_access", lambda _: None)
    monkeypatch.setattr(live_module, "Api", lambda _: None)
    assembly = SimpleNamespace(crds=lambda: CRDS, controllers=lambda _: DEPLOYED, nodes=None)
    one: Any = SimpleNamespace(cluster=SimpleNamespace(kubeconfig=None), assembly=assembly, pair=PAIR, ours=ours)
    assert len(live_module._differences(one, VERSIONS)) == (2 if ours else 0)
    assert one.kubernetes == PAIR.kubernetes


def found_on(image: str | None, runs: str) -> list[str]:
    """On a kind cluster whose nodes were made from this image, and say that they run this version."""
    nodes = Nodes.of(VERSIONS, PAIR, image)
    kubelets = dict.fromkeys(["control-plane", "worker"], f"v{runs}")
    detected = replace(pinned_in_pods(), kubernetes=f"v{runs}", kubelets=kubelets)
    pair = replace(PAIR, kubernetes=nodes.kubernetes)
    return drift(detected, pair, VERSIONS, Shipped(CRDS, DEPLOYED, nodes))


def test_nodes_of_the_pinned_image_or_of_the_one_that_is_built_here_do_not_drift() -> None:
    assert found_on(None, "1.34.11") == []
    assert found_on(own_image(PAIR.kubernetes), PAIR.kubernetes) == []


def test_nodes_of_the_right_image_with_another_kubernetes_drift() -> None:
    assert "the API server says v1.34.4, pinned is v1.34.11" in found_on(None, "1.34.4")
    assert "the API server says v1.34.11, pinned is v1.34.4" in found_on(own_image(PAIR.kubernetes), "1.34.11")


def test_nodes_of_any_other_image_drift_even_if_they_run_what_it_says() -> None:
    told = found_on("kindest/node:v1.33.0", "1.33.0")
    assert told[0] == f"the nodes were made from image kindest/node:v1.33.0, pinned is {VERSIONS.node_image(PAIR)}"
    assert told[1:] == [
        "the API server says v1.33.0, pinned is v1.34.11",
        "the kubelet of node control-plane says v1.33.0, pinned is v1.34.11",
        "the kubelet of node worker says v1.33.0, pinned is v1.34.11",
    ]
    assert len(found_on("mine/node:latest", "1.34.11")) == 1


def test_a_refusal_says_how_many_there_are_and_what_to_do() -> None:
    text = str(refusal([f"difference {number}" for number in range(20)]))
    assert "in 20 respects" in text
    assert "--allow-drift" in text
    assert text.endswith("and 8 more")


SAID = '{"msg":"Loaded feature gates","featureGates":{"A":true,"B":false}}'


def test_feature_gates_are_those_of_the_last_start() -> None:
    older = '{"msg":"Loaded feature gates","featureGates":{"A":false}}'
    broken = '{"msg":"Loaded feature gates","featureG'
    assert features_said([older, '{"msg":"other"}', SAID, broken, '{"msg":"other"}']) == {"A": True, "B": False}
    assert features_said(['{"msg":"other"}']) is None
    assert features_said([]) is None


class Server:
    """An API server that says what `pinned` says."""

    def __init__(self, *, hides_webhooks: bool = False) -> None:
        self.hides_webhooks = hides_webhooks

    def get(self, path: str) -> dict[str, Any]:
        if path.endswith("mutatingwebhookconfigurations"):
            if self.hides_webhooks:
                raise ApiError("GET", path, 403, {"reason": "Forbidden"})
            return {"items": [{"webhooks": [{"name": name} for name in WEBHOOKS]}, {}]}
        return {"gitVersion": "v1.34.4"} if path == "/version" else {"items": CRDS}


class InPods:
    """A cluster whose components run in pods; Kueue says nothing."""

    def programs(self) -> None:
        return None

    def containers(self) -> dict[str, list[Container]]:
        return {name: list(each) for name, each in pinned_in_pods().containers.items()}

    def kubelets(self) -> dict[str, str]:
        return {"worker": "v1.34.4"}

    def first_words(self, component: str) -> list[str]:
        return [SAID] if component == "kuberay" else []


def test_a_cluster_without_processes_of_its_own_is_asked_what_runs_in_it() -> None:
    detected = detect(cast("Api", Server()), InPods(), ("kueue", "kuberay"))
    assert (detected.kubernetes, detected.programs) == ("v1.34.4", None)
    assert detected.features == {"kuberay": {"A": True, "B": False}}
    assert detected.kubelets == {"worker": "v1.34.4"}
    assert detected.containers == pinned_in_pods().containers
    assert set(detected.crds) == {one["metadata"]["name"] for one in CRDS}
    assert detected.webhooks == frozenset(WEBHOOKS)


def test_webhooks_that_a_cluster_does_not_show_us_are_not_held_against_it() -> None:
    detected = detect(cast("Api", Server(hides_webhooks=True)), InPods(), ("kueue", "kuberay"))
    assert detected.webhooks is None
    assert not [line for line in gate_differences(detected.seen, PAIR.versions()) if "webhook" in line]


def test_a_webhook_that_is_not_there_contradicts_the_gate_that_it_is_the_sign_of() -> None:
    seen = replace(pinned(), webhooks=frozenset({"mrayjob.kb.io"})).seen
    (line,) = gate_differences(seen, PAIR.versions())
    assert line.startswith("gate rayservice-managed: kueue 0.19.2 has it by its range")
