"""Whether versions.toml says what the modules themselves say: their checksums, and what goes with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from raykueue.errors import ToolchainError
from raykueue.model.versions import Release, Versions
from raykueue.toolchain.golang import Go, Module

_KUBERAY = "github.com/ray-project/kuberay/ray-operator"
_SAMPLE = Path("config", "samples", "ray-job.sample.yaml")
_RAY = re.compile(r"^\s*rayVersion:\s*['\"]?([\d.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of one release."""

    release: Release
    wrong: str = ""
    """Empty: all that was looked at is as it stands in versions.toml."""


def verify(versions: Versions, go: Go, scratch: Path) -> Iterator[Verified]:
    """Each release in turn, as soon as it is known. What Go has not in its cache it downloads.

    The checksum is the one that the Go client finds, and holds against the public checksum database unless the user's
    settings forbid it.
    """
    for release in versions.releases:
        try:
            module = go.module(release, scratch)
            yield Verified(release, _beside(release, module, versions, go, scratch))
        except ToolchainError as error:
            yield Verified(release, str(error))


def _beside(release: Release, module: Module, versions: Versions, go: Go, scratch: Path) -> str:
    """What the module says about other products, if versions.toml says otherwise."""
    if release.product == "kueue":
        required = go.describe(module.go_mod, scratch).get("Require") or []
        named = next((one["Version"] for one in required if one["Path"] == _KUBERAY), "no version")
        pinned = versions.named_by[release.version]
        if named != f"v{pinned}":
            return f"its go.mod names {_KUBERAY} {named}, versions.toml says kuberay = {pinned!r}"
    if release.product == "kuberay":
        try:
            found = _RAY.search((module.folder / _SAMPLE).read_text(encoding="utf-8"))
        except OSError as error:
            return f"its sample {_SAMPLE} can't be read: {error}"
        said = found[1] if found else "no version"
        pinned = versions.ray.get(release.version, "nothing")
        if said != pinned:
            return f"its sample {_SAMPLE} names Ray {said}, versions.toml says ray = {pinned!r}"
    return ""
