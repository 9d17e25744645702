"""What each program is built from, and with which flags: data and pure functions, no process is started here."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from raykueue.model.versions import Release, Version

Use: TypeAlias = Literal["embedded", "kind", "airgap", "lint"]
"""What a program is for: an embedded cluster, driving kind, a node image that is built here, or this repository."""


@dataclass(frozen=True, slots=True)
class Program:
    """One binary of one product."""

    name: str
    product: str
    package: str
    """The Go package with its main function."""
    minutes: float
    """How long a build takes on two cores with cold caches, measured; for the estimate that is shown, no more."""
    stamp: str = ""
    """The variable that says the version, or the binary reports a placeholder such as v0.0.0."""
    use: Use = "embedded"


_KUBERNETES = "k8s.io/kubernetes/cmd"
_KUBERNETES_VERSION = "k8s.io/component-base/version"

PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program("etcd", "etcd", "go.etcd.io/etcd/server/v3", 0.5),
        # The three share most of what they compile: the first one pays.
        Program("kube-apiserver", "kubernetes", f"{_KUBERNETES}/kube-apiserver", 5.0, _KUBERNETES_VERSION),
        Program(
            "kube-controller-manager", "kubernetes", f"{_KUBERNETES}/kube-controller-manager", 1.4, _KUBERNETES_VERSION
        ),
        Program("kube-scheduler", "kubernetes", f"{_KUBERNETES}/kube-scheduler", 0.2, _KUBERNETES_VERSION),
        Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", 1.7),
        # Renders the manifests that Kueue and KubeRay ship, as their releases do.
        Program("kustomize", "kustomize", "sigs.k8s.io/kustomize/kustomize/v5", 0.5),
        Program("kueue", "kueue", "sigs.k8s.io/kueue/cmd/kueue", 4.4, "sigs.k8s.io/kueue/pkg/version.GitVersion"),
        # Its package main is the root of the module.
        Program("kuberay", "kuberay", "github.com/ray-project/kuberay/ray-operator", 1.5),
        Program("kind", "kind", "sigs.k8s.io/kind", 1.0, use="kind"),
        Program("kubectl", "kubernetes", f"{_KUBERNETES}/kubectl", 0.9, _KUBERNETES_VERSION, "kind"),
        Program("kubeadm", "kubernetes", f"{_KUBERNETES}/kubeadm", 0.4, _KUBERNETES_VERSION, "airgap"),
        Program("kubelet", "kubernetes", f"{_KUBERNETES}/kubelet", 0.9, _KUBERNETES_VERSION, "airgap"),
        Program("kube-proxy", "kubernetes", f"{_KUBERNETES}/kube-proxy", 0.4, _KUBERNETES_VERSION, "airgap"),
        Program(
            "crictl",
            "cri-tools",
            "sigs.k8s.io/cri-tools/cmd/crictl",
            2.0,
            "sigs.k8s.io/cri-tools/pkg/version.Version",
            "airgap",
        ),
        Program("actionlint", "actionlint", "github.com/rhysd/actionlint/cmd/actionlint", 0.2, use="lint"),
    )
}

SOURCES: Mapping[str, tuple[str, ...]] = {
    "kueue": ("config",),
    "kuberay": ("config",),
    "kwok": ("kustomize/stage",),
    "kind": ("images/base/files",),
}
"""The folders of a product's module that hold its manifests; of kind, what it puts into its node images."""

SOURCES_MINUTES = 0.1


def ldflags(program: Program, release: Release) -> str:
    """The linker's flags. Stamps change nothing but what the program says of itself."""
    flags = ["-s", "-w"]
    if program.stamp == _KUBERNETES_VERSION:
        version = Version.parse(release.version)
        stamps = {"gitVersion": release.tag, "gitMajor": str(version.major), "gitMinor": str(version.minor)}
        flags += [f"-X {program.stamp}.{name}={value}" for name, value in stamps.items()]
    elif program.stamp:
        flags.append(f"-X {program.stamp}={release.tag}")
    return " ".join(flags)


def build_arguments(program: Program, release: Release) -> list[str]:
    """The arguments of `go` but for `-o FILE`."""
    return ["build", "-trimpath", "-ldflags", ldflags(program, release), program.package]


def go_platform() -> tuple[str, str]:
    """(GOOS, GOARCH) of this machine: the binaries run here."""
    machine = platform.machine().lower()
    return sys.platform, {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def go_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that `go` runs in: the user's (registry, caches, checksum database), but for what decides the
    result. GOFLAGS must hold something, or the one of `go env -w` would count."""
    goos, goarch = go_platform()
    decided = {"CGO_ENABLED": "0", "GOWORK": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
    return {**environment, **decided, "GOOS": goos, "GOARCH": goarch}


def replaces(module: Mapping[str, Any], release: Release) -> list[str]:
    """The `replace` lines that a wrapper must repeat, since Go ignores those of a dependency.

    `module` is the JSON of `go mod edit -json` for the module's own go.mod. A replacement by another module is
    carried over (KubeRay 1.3.2 needs its two). One by a local folder means nothing outside the repository and is left
    out, except Kubernetes' staging folders, which are published as k8s.io/X v0.<minor>.<patch> for Kubernetes
    v1.<minor>.<patch> (staging/README.md@v1.34.4).
    """
    lines = []
    for entry in module.get("Replace") or ():
        old, new = entry["Old"], entry["New"]
        left = " ".join(filter(None, (old["Path"], old.get("Version"))))
        if new.get("Version"):
            lines.append(f"replace {left} => {new['Path']} {new['Version']}")
        elif new["Path"] == f"./staging/src/{old['Path']}":
            version = Version.parse(release.version)
            lines.append(f"replace {left} => {old['Path']} v0.{version.minor}.{version.patch}")
    return lines


def wrapper_module(module: Mapping[str, Any], release: Release) -> str:
    """The go.mod of a module that has the release as a dependency; `go get -tool` adds the rest.

    Go version and GODEBUG settings are the module's own, so the runtime behaves as upstream's does.
    """
    settings = [f"godebug {entry['Key']}={entry['Value']}" for entry in module.get("GoDebug") or ()]
    lines = ["module wrapper", f"go {module['Go']}", *settings, *replaces(module, release)]
    return "\n".join(lines) + "\n"


def estimate(minutes: float, cores: int | None = None) -> float:
    """Seconds that a build of so many minutes on two cores may take here."""
    return minutes * 60 * 2 / (cores or os.cpu_count() or 2)


def programs_for(use: Use, product: str = "") -> Sequence[Program]:
    """The programs with one use; with `product`, those that are built from its module."""
    return [program for program in PROGRAMS.values() if program.use == use and product in ("", program.product)]
