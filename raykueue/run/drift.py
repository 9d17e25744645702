"""Whether what runs is what was pinned: programs or images, CRDs, versions, and what the gates say of them. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from raykueue.clusters.protocol import ComponentSpec, Manifest
from raykueue.errors import Drifted
from raykueue.model.gates import GATES, Gate
from raykueue.model.gates.signs import Seen
from raykueue.model.images import same_image
from raykueue.model.node_images import Nodes
from raykueue.model.versions import Pair, Versions
from raykueue.run.assembly import CONTROLLERS
from raykueue.run.detected import Detected
from raykueue.toolchain.recipe import PROGRAMS

_GROUPS = ("ray.io", "kueue.x-k8s.io")
"""Of CRDs: what somebody else has installed beside them is none of ours."""
_SHOWN = 12
"""Differences in one message; the report has all of them."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """What the pinned modules ship, as this suite has installed it."""

    crds: Sequence[Manifest]
    """But for conversion webhooks."""
    components: Sequence[ComponentSpec] = ()
    """Both controllers; of those that are deployed their images are compared."""
    nodes: Nodes | None = None
    """Of a kind cluster: what they were made from."""


def refusal(differences: Sequence[str]) -> Drifted:
    """The error of a run that these differences stop."""
    more = f"\n  and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
    lines = "".join(f"\n  {one}" for one in differences[:_SHOWN])
    return Drifted(
        f"what runs is not what was pinned, in {len(differences)} respects, so nothing was tested; --allow-drift tests "
        f"it nevertheless and marks the report:{lines}{more}"
    )


def drift(detected: Detected, pair: Pair, versions: Versions, shipped: Shipped | None) -> list[str]:
    """Each difference in one sentence; empty: all is as it was pinned.

    Args:
        detected: what runs.
        pair: what should.
        versions: what was pinned.
        shipped: what was installed; None: by somebody else, so the pair is what was found there, and nothing was
            pinned but what a release of this version can do.
    """
    if shipped is None:
        # A vendor's build says more: v1.33.5-eks-1a2b3c, v1.33.5+k3s1.
        return [
            *_api_server(re.split("[-+]", detected.kubernetes)[0], pair),
            *gate_differences(detected.seen, pair.versions()),
        ]
    if shipped.nodes is not None:
        pair = replace(pair, kubernetes=shipped.nodes.wanted)
    return [
        *_nodes(shipped.nodes),
        *_api_server(detected.kubernetes, pair),
        *_kubelets(detected, pair),
        *_programs(detected, pair, versions),
        *_images(detected, shipped.components),
        *_logs(detected),
        *_crds(detected, shipped.crds),
        *gate_differences(detected.seen, pair.versions()),
    ]


def gate_differences(seen: Seen, pair: Mapping[str, str], gates: Iterable[Gate] = GATES) -> Iterator[str]:
    """Gates whose sign on the cluster is another than their range of versions says."""
    for gate in gates:
        shows = None if gate.sign is None else gate.sign.shows(seen)
        opened = gate.open_for(pair)
        if shows is None or shows == opened:
            continue
        found = "is there" if shows else "is not there"
        wanted = "has" if opened else "does not have"
        yield (
            f"gate {gate.name}: {gate.product} {pair[gate.product]} {wanted} it by its range, but on the cluster its "
            f"sign, {gate.sign}, {found}"
        )


def _nodes(nodes: Nodes | None) -> Iterator[str]:
    if nodes is not None and not nodes.as_pinned:
        yield f"the nodes were made from image {nodes.image}, pinned is {nodes.pinned or 'none'}"


def _api_server(says: str, pair: Pair) -> Iterator[str]:
    if says != f"v{pair.kubernetes}":
        yield f"the API server says {says}, pinned is v{pair.kubernetes}"


def _kubelets(detected: Detected, pair: Pair) -> Iterator[str]:
    for node, says in detected.kubelets.items():
        if says != f"v{pair.kubernetes}":
            yield f"the kubelet of node {node} says {says}, pinned is v{pair.kubernetes}"


def _images(detected: Detected, components: Iterable[ComponentSpec]) -> Iterator[str]:
    for component in components:
        for name, pinned in component.images.items():
            found = [one for one in detected.containers.get(component.name, ()) if one.name == name]
            if not found:
                yield f"no container {name} of {component.name} runs, pinned is image {pinned}"
            for one in found:
                if not (same_image(pinned, one.image) and same_image(pinned, one.runs)):
                    yield (
                        f"{component.name}'s container {name} in pod {one.pod} asks for image {one.image} and runs "
                        f"{one.runs or 'one without a name'}, pinned is {pinned}"
                    )


def _logs(detected: Detected) -> Iterator[str]:
    for name in CONTROLLERS:
        if name not in detected.features:
            yield f"the log of {name} does not say which feature gates are on: expected at its start"


def _programs(detected: Detected, pair: Pair, versions: Versions) -> Iterator[str]:
    if detected.programs is None:
        return
    for name, program in PROGRAMS.items():
        if program.use != "embedded" or name == "kustomize":  # which renders manifests, and does not run
            continue
        release = versions.release_for(program.product, pair)
        modules = detected.programs.get(name)
        if modules is None:
            yield f"no program {name} runs, pinned is {release}"
            continue
        module = modules.get(release.module)
        runs = "something else" if module is None else f"{module.version} {module.checksum}"
        if runs != f"{release.tag} {release.checksum}":
            yield f"{name} was built from {runs} of {release.module}, pinned is {release.tag} {release.checksum}"


def _crds(detected: Detected, pinned: Sequence[Manifest]) -> Iterator[str]:
    names = {str(crd["metadata"]["name"]) for crd in pinned}
    for crd in pinned:
        name = str(crd["metadata"]["name"])
        if name not in detected.crds:
            yield f"CRD {name} is not there"
            continue
        if place := _first_difference(crd["spec"].get("versions"), detected.crds[name].get("versions"), "versions"):
            yield f"CRD {name} differs from the pinned one at {place}"
    for name, spec in detected.crds.items():
        if name not in names and spec.get("group") in _GROUPS:
            yield f"CRD {name} is there, and was not installed by this suite"


def _first_difference(pinned: Any, runs: Any, place: str) -> str:
    """Where the two differ; what is empty counts as absent, since the API server leaves it out."""
    if isinstance(pinned, Mapping) and isinstance(runs, Mapping):
        for key in pinned.keys() | runs.keys():
            if found := _first_difference(pinned.get(key), runs.get(key), f"{place}.{key}"):
                return found
        return ""
    if isinstance(pinned, list) and isinstance(runs, list) and len(pinned) == len(runs):
        pairs = enumerate(zip(pinned, runs, strict=True))
        return next((f for i, (a, b) in pairs if (f := _first_difference(a, b, f"{place}[{i}]"))), "")
    return "" if pinned == runs or (not pinned and not runs) else place
