"""How a gate shows on a live cluster, for those that do: a CRD, a webhook, what a controller says at its start. Pure.

A sign is read before the first test and compared with the gate's range of versions, so that a range which is wrong, or
a cluster that is not what it says, is told and never skips a test in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Component: TypeAlias = Literal["kueue", "kuberay"]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was read from a live cluster."""

    crds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Name → spec of the CRD."""
    features: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    """Component → its feature gates and whether they are on; a component whose log did not say is missing."""
    webhooks: frozenset[str] | None = None
    """Names of mutating webhooks; None: nobody may know them."""


@dataclass(frozen=True, slots=True)
class Field:
    """A CRD's schema has this field, in the newest version that it serves."""

    crd: str
    path: str
    """Names with dots between them; [] for a list's items: "spec.rules[].policy"."""

    def shows(self, seen: Seen) -> bool | None:
        """Whether it does; None if it can't be known."""
        schema = _schema(seen, self.crd)
        return None if schema is None else _at(schema, self.path) is not None

    def __str__(self) -> str:
        return f"field {self.path} of CRD {self.crd}"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A list in a CRD may have so many items at least, or any number."""

    crd: str
    path: str
    items: int

    def shows(self, seen: Seen) -> bool | None:
        """As `Field.shows`."""
        schema = _schema(seen, self.crd)
        found = None if schema is None else _at(schema, self.path)
        return None if found is None else int(found.get("maxItems", self.items)) >= self.items

    def __str__(self) -> str:
        return f"up to {self.items} items in {self.path} of CRD {self.crd}"


@dataclass(frozen=True, slots=True)
class Served:
    """A CRD is served at this version."""

    crd: str
    version: str

    def shows(self, seen: Seen) -> bool | None:
        """As `Field.shows`."""
        spec = seen.crds.get(self.crd)
        return None if spec is None else self.version in _served(spec)

    def __str__(self) -> str:
        return f"version {self.version} of CRD {self.crd}"


@dataclass(frozen=True, slots=True)
class Feature:
    """A component says at its start that this feature gate is on; one that does not know it says nothing of it."""

    component: Component
    name: str

    def shows(self, seen: Seen) -> bool | None:
        """As `Field.shows`."""
        features = seen.features.get(self.component)
        return None if features is None else features.get(self.name, False)

    def __str__(self) -> str:
        return f"feature gate {self.name} of {self.component} on"


@dataclass(frozen=True, slots=True)
class KnowsFeature:
    """A component knows this feature gate, on or off."""

    component: Component
    name: str

    def shows(self, seen: Seen) -> bool | None:
        """As `Field.shows`."""
        features = seen.features.get(self.component)
        return None if features is None else self.name in features

    def __str__(self) -> str:
        return f"feature gate {self.name} known to {self.component}"


@dataclass(frozen=True, slots=True)
class Webhook:
    """A mutating webhook of this name is configured, which releases do whether or not what it is for is on."""

    name: str

    def shows(self, seen: Seen) -> bool | None:
        """As `Field.shows`."""
        return None if seen.webhooks is None else self.name in seen.webhooks

    def __str__(self) -> str:
        return f"webhook {self.name}"


Sign: TypeAlias = Field | AtLeast | Served | Feature | KnowsFeature | Webhook


def _served(spec: Mapping[str, Any]) -> list[str]:
    return [version["name"] for version in spec.get("versions") or () if version.get("served")]


def _schema(seen: Seen, crd: str) -> Mapping[str, Any] | None:
    """Of the newest version: names such as v1beta1 and v1beta2 sort by their age."""
    spec = seen.crds.get(crd, {})
    served = {one["name"]: one for one in spec.get("versions") or () if one.get("served")}
    newest = next((name for name in ("v1", *sorted(served, reverse=True)) if name in served), None)
    schema: Mapping[str, Any] | None = (
        None if newest is None else (served[newest].get("schema") or {}).get("openAPIV3Schema")
    )
    return schema


def _at(schema: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    here: Mapping[str, Any] | None = schema
    for name in path.split("."):
        if here is None:
            return None
        here = (here.get("properties") or {}).get(name.removesuffix("[]"))
        if here is not None and name.endswith("[]"):
            here = here.get("items")
    return here
