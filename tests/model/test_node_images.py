from __future__ import annotations

from dataclasses import replace

import pytest

from raykueue.errors import UsageError
from raykueue.model.node_images import Nodes, kubernetes_of, own_image
from raykueue.toolchain.lock import load_versions

VERSIONS = load_versions()
PAIR = VERSIONS.default
PINNED = VERSIONS.node_image(PAIR)
DIGEST = PINNED.partition("@")[2]


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("kindest/node:v1.34.11@sha256:ab", "1.34.11"),
        ("registry.invalid:5000/node:v1.34.4", "1.34.4"),
        ("mine/node:latest", ""),
        ("mine/node@sha256:ab", ""),
    ],
)
def test_the_kubernetes_of_kind_is_the_one_of_its_node_image(image: str, version: str) -> None:
    assert kubernetes_of(image) == version


@pytest.mark.parametrize("image", [None, PINNED, f"mirror.invalid:5000/kindest/node@{DIGEST}"])
def test_the_pinned_image_is_as_pinned_wherever_it_comes_from(image: str | None) -> None:
    nodes = Nodes.of(VERSIONS, PAIR, image)
    assert nodes.as_pinned
    assert nodes.wanted == kubernetes_of(PINNED)


def test_the_image_that_is_built_here_is_as_pinned_with_the_kubernetes_that_was_asked_for() -> None:
    nodes = Nodes.of(VERSIONS, PAIR, own_image(PAIR.kubernetes))
    assert nodes.as_pinned
    assert nodes.wanted == nodes.kubernetes == PAIR.kubernetes


@pytest.mark.parametrize(
    "image",
    [
        PINNED.partition("@")[0],
        f"{PINNED.partition('@')[0]}@sha256:{'0' * 64}",
        own_image("1.33.0"),
        f"mine/node:v{PAIR.kubernetes}",
    ],
)
def test_any_other_image_is_not_as_pinned_whatever_its_tag_says(image: str) -> None:
    nodes = Nodes.of(VERSIONS, PAIR, image)
    assert not nodes.as_pinned
    assert nodes.wanted == kubernetes_of(PINNED)


def test_a_kubernetes_without_a_recorded_image_needs_one_that_is_named() -> None:
    other = replace(PAIR, kubernetes="1.33.0")
    with pytest.raises(UsageError, match=r"kubernetes 1\.33\.0 has no node_image"):
        Nodes.of(VERSIONS, other, None)
    assert Nodes.of(VERSIONS, other, own_image("1.33.0")).as_pinned
    assert not Nodes.of(VERSIONS, other, "mine/node:v1.33.0").as_pinned
    assert Nodes.of(VERSIONS, other, "mine/node").wanted == "1.33.0"
