from __future__ import annotations

import pytest

from raykueue.model.images import Reference, same_image

KUEUE = "registry.k8s.io/kueue/kueue"
DIGEST = f"sha256:{'ab' * 32}"


@pytest.mark.parametrize(
    ("text", "repository", "tag", "digest"),
    [
        ("busybox", "docker.io/library/busybox", "latest", ""),
        ("kuberay/operator:v1", "docker.io/kuberay/operator", "v1", ""),
        (f"{KUEUE}:v0.19.2", KUEUE, "v0.19.2", ""),
        (f"{KUEUE}@{DIGEST}", KUEUE, "", DIGEST),
        (f"{KUEUE}:v0.19.2@{DIGEST}", KUEUE, "v0.19.2", DIGEST),
        ("localhost:5000/kueue", "localhost:5000/kueue", "latest", ""),
        ("localhost/kueue:main", "localhost/kueue", "main", ""),
        ("index.docker.io/busybox:1", "docker.io/library/busybox", "1", ""),
    ],
)
def test_a_reference_is_read_with_all_that_it_leaves_out(text: str, repository: str, tag: str, digest: str) -> None:
    assert Reference.parse(text) == Reference(repository, tag, digest)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{KUEUE}:v0.19.2", f"{KUEUE}:v0.19.2"),
        ("operator:v1", "docker.io/library/operator:v1"),
        ("kuberay/operator:v1", "docker.io/kuberay/operator:v1"),
        ("kuberay/operator", "index.docker.io/kuberay/operator:latest"),
        (f"{KUEUE}:v0.19.2", f"{KUEUE}:v0.19.2@{DIGEST}"),
        (f"{KUEUE}:v0.19.2@{DIGEST}", f"{KUEUE}@{DIGEST}"),
        (f"{KUEUE}:v0.19.2@{DIGEST}", f"{KUEUE}:main@{DIGEST}"),
    ],
)
def test_the_same_image_by_two_spellings(one: str, other: str) -> None:
    assert same_image(one, other)
    assert same_image(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{KUEUE}:v0.19.2", f"{KUEUE}:v0.19.20"),
        (f"{KUEUE}:v0.19.2", f"{KUEUE}:V0.19.2"),
        (f"{KUEUE}:v0.19.2", "mirror.example/kueue/kueue:v0.19.2"),
        (f"{KUEUE}:v0.19.2", "kueue/kueue:v0.19.2"),
        (f"{KUEUE}:v0.19.2", f"{KUEUE}@{DIGEST}"),
        (f"{KUEUE}:v0.19.2@{DIGEST}", f"{KUEUE}:v0.19.2@sha256:{'cd' * 32}"),
        (f"{KUEUE}@{DIGEST}", f"{KUEUE}@sha256:{'cd' * 32}"),
        (f"{KUEUE}:v0.19.2", DIGEST),
        (f"{KUEUE}:v0.19.2", ""),
        ("", ""),
    ],
)
def test_another_image_or_one_of_which_nobody_can_say(one: str, other: str) -> None:
    assert not same_image(one, other)
    assert not same_image(other, one)
