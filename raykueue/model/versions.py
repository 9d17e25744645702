"""Which releases exist, which run together, and how versions compare. Pure: the text comes from the caller.

`raykueue.toolchain.lock.load_versions` reads versions.toml and hands its text to `parse`.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from raykueue.errors import UsageError

PairClass: TypeAlias = Literal["pinned", "supported", "exploratory"]

PAIRED = ("kubernetes", "kueue", "kuberay")
"""The products whose versions make a pair; all others go with every pair, at one version."""

_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?")


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version that compares by its numbers: `Version.parse("0.9") < Version.parse("0.10.1")`."""

    major: int
    minor: int = 0
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> Version:
        """Reads "1", "1.34", "1.34.4", each with or without a leading v; what is missing counts as 0.

        Raises:
            UsageError: the text is none of these (pre-releases are not among our releases).
        """
        match = _VERSION.fullmatch(text)
        if match is None:
            raise UsageError(f"version {text!r}: expected up to three numbers, such as 1.34.4")
        return cls(*(int(number or 0) for number in match.groups()))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


@dataclass(frozen=True, slots=True)
class Release:
    """One release of one product: what is built, and the checksum that it must have."""

    product: str
    version: str
    """Without the leading v: "0.19.2"."""
    module: str
    """The Go module's path."""
    checksum: str
    """The `Sum` of `go mod download -json`: "h1:…"."""

    @property
    def tag(self) -> str:
        """The version as Go writes it: "v0.19.2"."""
        return f"v{self.version}"

    def __str__(self) -> str:
        return f"{self.product} {self.version}"


@dataclass(frozen=True, slots=True)
class Pair:
    """One KubeRay version with one Kueue version, on one Kubernetes version."""

    kubernetes: str
    kueue: str
    kuberay: str
    klass: PairClass = "exploratory"

    def versions(self) -> dict[str, str]:
        """{"kubernetes": …, "kueue": …, "kuberay": …}: as it stands in a journal's header."""
        return {product: getattr(self, product) for product in PAIRED}

    def __str__(self) -> str:
        return f"Kueue {self.kueue}, KubeRay {self.kuberay}, Kubernetes {self.kubernetes}"


@dataclass(frozen=True, slots=True)
class Versions:
    """versions.toml, understood."""

    recipe: int
    go_minimum: Version
    go_wheel: str
    releases: tuple[Release, ...]
    pairs: tuple[Pair, ...]
    """Every Kueue release with every KubeRay release, newest first."""
    default: Pair
    companions: Mapping[str, str]
    """The products that go with every pair: {"etcd": "3.6.8", "kwok": "0.8.0"}."""
    kind: Mapping[str, str]
    """The products that only kind clusters need: {"kind": "0.33.0", …}."""
    lint: Mapping[str, str]
    """What checks this repository itself: {"actionlint": "1.7.12"}."""
    node_images: Mapping[str, str]
    """Kubernetes version → reference of kind's node image, by digest."""
    ray: Mapping[str, str]
    """KubeRay version → the version of Ray that its samples name."""
    images: Mapping[str, str]
    """Product → name of the image that its releases are published under, where its manifests name another one."""
    named_by: Mapping[str, str]
    """Kueue version → the KubeRay version that its go.mod names."""

    def pair(self, kueue: str | None = None, kuberay: str | None = None, kubernetes: str | None = None) -> Pair:
        """The pair of these versions; what is not named is taken from the default pair.

        Raises:
            UsageError: a version is not among the releases; the message lists those that are.
        """
        chosen = Pair(
            self.release("kubernetes", kubernetes or self.default.kubernetes).version,
            self.release("kueue", kueue or self.default.kueue).version,
            self.release("kuberay", kuberay or self.default.kuberay).version,
        )
        return next((pair for pair in self.pairs if pair.versions() == chosen.versions()), chosen)

    def made_of(self, runs: Mapping[str, str]) -> Pair:
        """The pair that a cluster which runs these versions was made of: {"kubernetes": …, "kueue": …, "kuberay": …}.

        kind publishes node images for some patch releases of Kubernetes only. What runs there is then none of the
        releases, and everything else comes from the default one.

        Raises:
            UsageError: Kueue's or KubeRay's version is not among the releases.
        """
        kubernetes = {one.version for one in self.releases if one.product == "kubernetes"} & {runs.get("kubernetes")}
        return self.pair(runs["kueue"], runs["kuberay"], next(iter(kubernetes), None))

    def release(self, product: str, version: str) -> Release:
        """One release, by "0.19.2" or "v0.19.2".

        Raises:
            UsageError: no such product or version; the message lists those that exist.
        """
        known = [release for release in self.releases if release.product == product]
        if not known:
            products = sorted({release.product for release in self.releases})
            raise UsageError(f"product {product!r} is not in versions.toml; known: {', '.join(products)}")
        for release in known:
            if release.version == version.removeprefix("v"):
                return release
        names = ", ".join(release.version for release in known)
        raise UsageError(f"{product} {version} is not in versions.toml; known: {names}")

    def release_for(self, product: str, pair: Pair) -> Release:
        """The release of a product that runs with this pair."""
        fixed = {**self.companions, **self.kind, **self.lint}
        return self.release(product, fixed.get(product) or pair.versions().get(product, ""))

    def node_image(self, pair: Pair) -> str:
        """The upstream node image that a kind cluster of this pair is made from: `kindest/node:v…@sha256:…`.

        Raises:
            UsageError: none is recorded for the Kubernetes version.
        """
        return _recorded(self.node_images, "node_image", "kubernetes", pair.kubernetes)

    def ray_version(self, pair: Pair) -> str:
        """The version of Ray that real clusters of this pair run.

        Raises:
            UsageError: none is recorded for the KubeRay version.
        """
        return _recorded(self.ray, "ray", "kuberay", pair.kuberay)

    def image(self, product: str, pair: Pair) -> str:
        """The image of the product's release; empty if the manifests of the release name it themselves."""
        name = self.images.get(product, "")
        return f"{name}:{self.release_for(product, pair).tag}" if name else ""

    def digest(self, pair: Pair, backend: str = "embedded") -> str:
        """sha256 (hex) over all that is pinned and determines what runs for this pair on that kind of cluster."""
        products = {*PAIRED, *self.companions, *(self.kind if backend == "kind" else ())}
        releases = [self.release_for(product, pair) for product in sorted(products)]
        content: list[Any] = [self.recipe, [[one.product, one.version, one.module, one.checksum] for one in releases]]
        if backend == "kind":
            content += [self.node_images.get(pair.kubernetes), self.ray.get(pair.kuberay), sorted(self.images.items())]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def parse(text: str, name: str = "versions.toml") -> Versions:
    """Reads the text of versions.toml.

    Raises:
        UsageError: the text is no TOML, lacks something, or names a release that it doesn't have.
    """
    try:
        return _read(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: not TOML: {error}") from error
    except KeyError as error:
        raise UsageError(f"{name}: the key {error} is missing") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{name}: {error}") from error
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def _read(data: Mapping[str, Any]) -> Versions:
    releases = [
        Release(product, version, content["module"], details["sum"])
        for product, content in data["products"].items()
        for version, details in content["releases"].items()
    ]
    releases.sort(key=lambda release: (release.product, Version.parse(release.version)))
    for release in releases:
        if not release.checksum.startswith("h1:"):
            raise UsageError(f"{release}: sum {release.checksum!r}: expected h1:…, from go mod download -json")
    default = data["default"]
    named = _details(data, "kueue", "kuberay")
    pairs = _pairs(releases, named, default["kubernetes"])
    chosen = Pair(*(default[product] for product in PAIRED))
    versions = Versions(
        recipe=int(data["recipe"]),
        go_minimum=Version.parse(data["go"]["minimum"]),
        go_wheel=data["go"]["wheel"],
        releases=tuple(releases),
        pairs=pairs,
        default=next((pair for pair in pairs if pair.versions() == chosen.versions()), chosen),
        companions={product: version for product, version in default.items() if product not in PAIRED},
        kind=data.get("kind", {}),
        lint=data.get("lint", {}),
        node_images=_details(data, "kubernetes", "node_image"),
        ray=_details(data, "kuberay", "ray"),
        images={product: content["image"] for product, content in data["products"].items() if "image" in content},
        named_by=named,
    )
    for product in (*PAIRED, *versions.companions, *versions.kind, *versions.lint):
        versions.release_for(product, versions.default)
    return versions


def _pairs(releases: Sequence[Release], named: Mapping[str, str], kubernetes: str) -> tuple[Pair, ...]:
    """All there are, newest Kueue first, and for each of them newest KubeRay first."""
    kueues, kuberays = ([r.version for r in reversed(releases) if r.product == name] for name in ("kueue", "kuberay"))
    if unnamed := [version for version in kueues if version not in named]:
        raise UsageError(f"kueue {unnamed[0]}: expected `kuberay`, the release that its go.mod names")
    return tuple(
        Pair(kubernetes, kueue, kuberay, klass(named[kueue], kuberay)) for kueue in kueues for kuberay in kuberays
    )


def klass(named: str, kuberay: str) -> PairClass:
    """The class of a pair of this KubeRay with a Kueue whose go.mod names `named`."""
    if named == kuberay:
        return "pinned"
    wants, has = Version.parse(named), Version.parse(kuberay)
    return "supported" if (wants.major, wants.minor) == (has.major, has.minor) else "exploratory"


def _details(data: Mapping[str, Any], product: str, key: str) -> dict[str, str]:
    releases = data["products"][product]["releases"]
    return {version: details[key] for version, details in releases.items() if key in details}


def _recorded(values: Mapping[str, str], key: str, product: str, version: str) -> str:
    if version not in values:
        known = ", ".join(sorted(values, key=Version.parse)) or "none"
        raise UsageError(f"{product} {version} has no {key} in versions.toml; it is recorded for: {known}")
    return values[version]
