from __future__ import annotations

import pytest

from raykueue.model.versions import Versions
from raykueue.toolchain.recipe import PROGRAMS, SOURCES, estimate, go_environment, ldflags, replaces, wrapper_module


def entry(old: str, new: str, version: str = "", old_version: str = "") -> dict[str, dict[str, str]]:
    left = {"Path": old, **({"Version": old_version} if old_version else {})}
    return {"Old": left, "New": {"Path": new, **({"Version": version} if version else {})}}


def test_a_replacement_by_another_module_is_carried_over(versions: Versions) -> None:
    module = {
        "Replace": [
            entry("github.com/imdario/mergo", "github.com/imdario/mergo", "v0.3.16"),
            entry("example.org/otelhttp", "example.org/otelhttp", "v0.44.0", old_version="v0.35.1"),
        ]
    }
    assert replaces(module, versions.release("kuberay", "1.3.2")) == [
        "replace github.com/imdario/mergo => github.com/imdario/mergo v0.3.16",
        "replace example.org/otelhttp v0.35.1 => example.org/otelhttp v0.44.0",
    ]


def test_a_replacement_by_a_local_folder_is_left_out(versions: Versions) -> None:
    module = {
        "Replace": [entry("go.etcd.io/etcd/api/v3", "../api"), entry("go.etcd.io/etcd", "./FORBIDDEN_DEPENDENCY")]
    }
    assert replaces(module, versions.release("etcd", "3.6.8")) == []


def test_a_staging_folder_of_kubernetes_becomes_the_published_module(versions: Versions) -> None:
    module = {"Replace": [entry("k8s.io/api", "./staging/src/k8s.io/api")]}
    assert replaces(module, versions.release("kubernetes", "1.34.4")) == ["replace k8s.io/api => k8s.io/api v0.34.4"]


@pytest.mark.parametrize("module", [{}, {"Replace": None}])
def test_a_module_without_replacements_has_none(versions: Versions, module: dict[str, None]) -> None:
    assert replaces(module, versions.release("kwok", "0.8.0")) == []


def test_the_wrapper_keeps_the_modules_go_version_and_settings(versions: Versions) -> None:
    module = {
        "Go": "1.24.0",
        "GoDebug": [{"Key": "default", "Value": "go1.24"}],
        "Replace": [entry("k8s.io/api", "./staging/src/k8s.io/api")],
    }
    assert wrapper_module(module, versions.release("kubernetes", "1.34.4")).splitlines() == [
        "module wrapper",
        "go 1.24.0",
        "godebug default=go1.24",
        "replace k8s.io/api => k8s.io/api v0.34.4",
    ]


def test_kubernetes_is_told_its_version_and_kueue_its_own(versions: Versions) -> None:
    stamp = "-X k8s.io/component-base/version."
    kubernetes = ldflags(PROGRAMS["kube-apiserver"], versions.release("kubernetes", "1.34.4"))
    assert kubernetes == f"-s -w {stamp}gitVersion=v1.34.4 {stamp}gitMajor=1 {stamp}gitMinor=34"
    kueue = ldflags(PROGRAMS["kueue"], versions.release("kueue", "0.16.2"))
    assert kueue == "-s -w -X sigs.k8s.io/kueue/pkg/version.GitVersion=v0.16.2"
    crictl = ldflags(PROGRAMS["crictl"], versions.release("cri-tools", "1.34.0"))
    assert crictl == "-s -w -X sigs.k8s.io/cri-tools/pkg/version.Version=v1.34.0"
    assert ldflags(PROGRAMS["etcd"], versions.release("etcd", "3.6.8")) == "-s -w"


def test_the_users_registry_stays_and_the_users_platform_does_not() -> None:
    environment = go_environment({"GOPROXY": "https://proxy.invalid", "GOOS": "plan9", "CGO_ENABLED": "1"})
    assert environment["GOPROXY"] == "https://proxy.invalid"
    assert environment["GOOS"] != "plan9"
    assert environment["CGO_ENABLED"] == "0"


def test_every_program_and_every_manifest_has_a_release(versions: Versions) -> None:
    for program in PROGRAMS.values():
        release = versions.release_for(program.product, versions.default)
        assert program.package.startswith(release.module)
    for product in SOURCES:
        assert versions.release_for(product, versions.default)


def test_an_estimate_halves_with_twice_the_cores() -> None:
    assert estimate(3, cores=2) == 180
    assert estimate(3, cores=4) == 90
