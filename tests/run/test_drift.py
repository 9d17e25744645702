from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from raykueue.errors import Drifted
from raykueue.kube.client import Api
from raykueue.run.detected import Detected, detect, features_said
from raykueue.run.drift import drift, gate_differences, refusal
from raykueue.toolchain.buildinfo import Module
from raykueue.toolchain.lock import load_versions
from raykueue.toolchain.recipe import PROGRAMS

VERSIONS = load_versions()
PAIR = VERSIONS.default
PODS = {"maxItems": 18, "items": {"description": "a pod set"}}
STRATEGY = {"deletionRules": {"items": {"properties": {"condition": {"properties": {"jobDeploymentStatus": {}}}}}}}
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
    return Detected(f"v{PAIR.kubernetes}", crds, programs, features)


def found(detected: Detected) -> list[str]:
    return drift(detected, PAIR, VERSIONS, CRDS)


def test_what_was_pinned_does_not_drift() -> None:
    assert found(pinned()) == []


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


def test_crds_of_others_are_none_of_ours_and_programs_elsewhere_are_not_looked_for() -> None:
    detected = replace(pinned(), programs=None, features={})
    assert found(replace(detected, crds={**detected.crds, "x.example.org": {"group": "example.org"}})) == []


def test_crds_that_somebody_else_installed_were_never_pinned() -> None:
    detected = crd_changed(crd_of_ours_more(pinned()))
    assert found(detected) != []
    assert drift(detected, PAIR, VERSIONS, None) == []


def test_a_wrong_range_is_told_in_both_directions() -> None:
    newer = list(gate_differences(pinned().seen, {"kueue": "0.14.0", "kuberay": "1.6.2"}))
    assert any("kueue 0.14.0 does not have it by its range, but" in one and one.endswith("is there") for one in newer)
    older = list(gate_differences(replace(pinned(), crds={}, features={"kueue": {}}).seen, PAIR.versions()))
    assert older
    assert all(one.endswith("is not there") for one in older)


def test_a_refusal_says_how_many_there_are_and_what_to_do() -> None:
    text = str(refusal([f"difference {number}" for number in range(20)]))
    assert "in 20 respects" in text
    assert "--allow-drift" in text
    assert text.endswith("and 8 more")


def test_feature_gates_are_those_of_the_last_start(tmp_path: Path) -> None:
    log = tmp_path / "kueue.log"
    log.write_text(
        '{"msg":"Loaded feature gates","featureGates":{"A":false}}\n'
        '{"msg":"Loaded feature gates","featureGates":{"A":true,"B":false}}\n'
        '{"msg":"Loaded feature gates","featureG\n{"msg":"other"}\n'
    )
    assert features_said(log) == {"A": True, "B": False}
    log.write_text('{"msg":"other"}\n')
    assert features_said(log) is None
    assert features_said(tmp_path / "none.log") is None


class Server:
    """An API server that says what `pinned` says."""

    def get(self, path: str) -> dict[str, Any]:
        return {"gitVersion": "v1.34.4"} if path == "/version" else {"items": CRDS}


def test_a_cluster_without_processes_of_its_own_is_asked_what_its_api_knows() -> None:
    api: Api = Server()  # type: ignore[assignment]
    detected = detect(api, object(), ("kueue", "kuberay"))
    assert (detected.kubernetes, detected.programs, detected.features) == ("v1.34.4", None, {})
    assert set(detected.crds) == {one["metadata"]["name"] for one in CRDS}
