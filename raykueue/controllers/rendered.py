"""The pinned modules' own manifests, rendered by kustomize as their releases are."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from raykueue.clusters.protocol import Manifest
from raykueue.errors import ToolchainError

_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Rendered:
    """Everything that one product ships."""

    product: str
    manifests: Sequence[Manifest]

    def of(self, *kinds: str) -> list[Manifest]:
        """The manifests of these kinds, in the order in which they are shipped."""
        return [manifest for manifest in self.manifests if manifest["kind"] in kinds]

    def one(self, kind: str, name_ends: str) -> Manifest:
        """The manifest of this kind whose name ends so.

        Raises:
            ToolchainError: none does, or several do.
        """
        found = [manifest for manifest in self.of(kind) if str(manifest["metadata"]["name"]).endswith(name_ends)]
        if len(found) != 1:
            raise ToolchainError(f"{self.product} ships {len(found)} {kind}s named …{name_ends}, expected one")
        return found[0]

    def bound_rbac(self, account: str) -> list[Manifest]:
        """The ServiceAccount, and the roles and bindings that give it what it may do: as shipped, and no more."""
        bindings = [
            manifest
            for manifest in self.of("RoleBinding", "ClusterRoleBinding")
            if any(subject["name"] == account for subject in manifest.get("subjects", []))
        ]
        bound = {(binding["roleRef"]["kind"], binding["roleRef"]["name"]) for binding in bindings}
        roles = [
            manifest
            for manifest in self.of("Role", "ClusterRole")
            if (manifest["kind"], manifest["metadata"]["name"]) in bound
        ]
        shipped = {(role["kind"], role["metadata"]["name"]) for role in roles}
        accounts = [manifest for manifest in self.of("ServiceAccount") if manifest["metadata"]["name"] == account]
        kept = [binding for binding in bindings if (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in shipped]
        return [*accounts, *roles, *kept]


def render(product: str, kustomize: Path, sources: Path, cache: Path, folder: str = "config/default") -> Rendered:
    """Renders `folder` of the module's sources once, and keeps the result by the sources' own digest.

    Raises:
        ToolchainError: kustomize fails; its own message is attached.
    """
    kept = kept_at(kustomize, sources, cache, folder)
    if not kept.exists():
        try:
            done = subprocess.run(
                [str(kustomize), "build", str(sources / folder)], capture_output=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolchainError(f"kustomize build of {product}'s {folder} failed: {error}") from error
        if done.returncode:
            raise ToolchainError(f"kustomize build of {product}'s {folder} failed:\n{done.stderr.decode()[-1500:]}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps(_documents(done.stdout)))
        partial.replace(kept)
    return Rendered(product, json.loads(kept.read_text()))


def kept_at(kustomize: Path, sources: Path, cache: Path, folder: str = "config/default") -> Path:
    """Where `render` keeps the result, whether it is there or not."""
    return cache / "manifests" / f"{sources.name}-{folder.replace('/', '-')}-{kustomize.parent.name}.json"


def _documents(text: bytes) -> list[Manifest]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # five times faster on 6 MB of CRDs, where it exists
    return [document for document in yaml.load_all(text, Loader=loader) if document]


def without(manifests: Iterable[Manifest], names: Iterable[str]) -> list[Manifest]:
    """The manifests whose names are not among these."""
    dropped = set(names)
    return [manifest for manifest in manifests if manifest["metadata"]["name"] not in dropped]
