"""Where pods must run, by a ResourceFlavor, and what a pod says about it.

Sources: kueue apis/kueue/v1beta2/resourceflavor_types.go:53-89, pkg/podset/podset.go:58-96@v0.19.2. v1beta1 and v1beta2
have the same shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from raykueue.model.events import Object
from raykueue.model.views import spec

Toleration: TypeAlias = tuple[str, str, str, str, int | None]
"""(key, operator, value, effect, seconds)."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Node labels and tolerations, of one flavor or of all of a PodSet together."""

    labels: Mapping[str, str] = field(default_factory=dict)
    tolerations: frozenset[Toleration] = frozenset()


def of_flavor(flavor: Object) -> Placement:
    """What a ResourceFlavor's spec asks of pods."""
    body = spec(flavor)
    return Placement(dict(body.get("nodeLabels") or {}), _tolerations(body.get("tolerations")))


def union(placements: Iterable[Placement]) -> Placement:
    """Of several flavors, one per resource group: all of them, but a label on which two disagree, which is either's."""
    values: dict[str, set[str]] = {}
    tolerations: set[Toleration] = set()
    for one in placements:
        for key, value in one.labels.items():
            values.setdefault(key, set()).add(value)
        tolerations |= one.tolerations
    return Placement({key: found.pop() for key, found in values.items() if len(found) == 1}, frozenset(tolerations))


def missing_labels(pod: Object, wanted: Mapping[str, str]) -> dict[str, str | None]:
    """Node labels that a pod does not ask for: key to the value that it asks for instead, None if it asks for none.

    A required node affinity whose every term wants exactly that value stands in for the selector.
    """
    selector: Mapping[str, str] = spec(pod).get("nodeSelector") or {}
    lacking = {k: selector.get(k) for k, value in wanted.items() if selector.get(k) != value}
    terms = _required_terms(pod) if lacking else []
    return {k: v for k, v in lacking.items() if not (terms and all(_wants(term, k, wanted[k]) for term in terms))}


def missing_tolerations(pod: Object, wanted: frozenset[Toleration]) -> frozenset[Toleration]:
    """Tolerations that a pod lacks, each compared as a whole."""
    return wanted - _tolerations(spec(pod).get("tolerations"))


def misfits(has: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    """Labels that a node lacks: key to the value that it has instead, None if it has none."""
    return {k: has.get(k) for k, value in wanted.items() if has.get(k) != value}


def describe_toleration(one: Toleration) -> str:
    """As people write it: `spot=true:NoSchedule`, `gpu:NoSchedule` for one that only asks that the key exists."""
    key, operator, value, effect, seconds = one
    shown = (key or "(any)") + (f"={value}" if operator == "Equal" else "")
    return shown + (f":{effect}" if effect else "") + ("" if seconds is None else f" for {seconds} s")


def _tolerations(listed: Iterable[Mapping[str, Any]] | None) -> frozenset[Toleration]:
    return frozenset(
        (
            str(one.get("key", "")),
            str(one.get("operator") or "Equal"),
            str(one.get("value", "")),
            str(one.get("effect", "")),
            one.get("tolerationSeconds"),
        )
        for one in listed or ()
    )


def _required_terms(pod: Object) -> list[Mapping[str, Any]]:
    affinity = (spec(pod).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return list(required.get("nodeSelectorTerms") or ())


def _wants(term: Mapping[str, Any], key: str, value: str) -> bool:
    return any(
        one.get("key") == key and one.get("operator") == "In" and one.get("values") == [value]
        for one in term.get("matchExpressions") or ()
    )
