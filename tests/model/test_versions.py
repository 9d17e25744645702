from __future__ import annotations

from dataclasses import replace

import pytest

from raykueue.errors import UsageError
from raykueue.model.versions import Pair, Version, Versions, klass, parse

TEXT = """
recipe = 3
[go]
minimum = "1.26"
wheel = "1.26.6"
[default]
kubernetes = "1.34.4"
kueue = "0.19.2"
kuberay = "1.6.2"
etcd = "3.6.8"
[kind]
kind = "0.33.0"
[products.kind]
module = "sigs.k8s.io/kind"
releases."0.33.0" = { sum = "h1:kind" }
[products.kubernetes]
module = "k8s.io/kubernetes"
releases."1.34.4" = { sum = "h1:k", node_image = "kindest/node:v1.34.11@sha256:ab" }
[products.kueue]
module = "sigs.k8s.io/kueue"
image = "published/kueue"
releases."0.19.2" = { sum = "h1:q19", kuberay = "1.6.2" }
releases."0.9.0" = { sum = "h1:q9", kuberay = "1.3.0" }
releases."0.10.1" = { sum = "h1:q10", kuberay = "1.2.2" }
[products.kuberay]
module = "github.com/ray-project/kuberay/ray-operator"
releases."1.6.2" = { sum = "h1:r", ray = "2.52.0" }
releases."1.3.2" = { sum = "h1:r3" }
[products.etcd]
module = "go.etcd.io/etcd/server/v3"
releases."3.6.8" = { sum = "h1:e" }
"""


@pytest.fixture
def versions() -> Versions:
    return parse(TEXT)


def test_versions_compare_by_their_numbers() -> None:
    assert sorted(["1.34.4", "0.10.2", "1.0", "0.9", "0.10.1"], key=Version.parse) == [
        "0.9",
        "0.10.1",
        "0.10.2",
        "1.0",
        "1.34.4",
    ]
    assert Version.parse("v1.34") == Version.parse("1.34.0")
    assert str(Version.parse("v1.34")) == "1.34.0"


@pytest.mark.parametrize("text", ["", "1.x", "1.7.0-rc.0", "1.2.3.4", "latest"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="three numbers"):
        Version.parse(text)


def test_the_default_pair_is_filled_in(versions: Versions) -> None:
    assert versions.pair() == versions.default == Pair("1.34.4", "0.19.2", "1.6.2", "pinned")
    assert versions.pair(kueue="v0.10.1") == Pair("1.34.4", "0.10.1", "1.6.2", "exploratory")


def test_what_runs_on_a_kubernetes_that_is_no_release_of_ours_was_made_of_the_rest(versions: Versions) -> None:
    runs = {"kubernetes": "1.34.11", "kueue": "0.10.1", "kuberay": "1.6.2"}
    assert versions.made_of(runs) == versions.pair(kueue="0.10.1")
    assert versions.made_of({**runs, "kubernetes": "1.34.4"}) == versions.pair(kueue="0.10.1")
    with pytest.raises(UsageError, match=r"kueue 0\.11\.0 is not in"):
        versions.made_of({**runs, "kueue": "0.11.0"})


def test_every_kueue_runs_with_every_kuberay_and_its_go_mod_says_the_class(versions: Versions) -> None:
    assert [(pair.kueue, pair.kuberay, pair.klass) for pair in versions.pairs] == [
        ("0.19.2", "1.6.2", "pinned"),
        ("0.19.2", "1.3.2", "exploratory"),
        ("0.10.1", "1.6.2", "exploratory"),
        ("0.10.1", "1.3.2", "exploratory"),
        ("0.9.0", "1.6.2", "exploratory"),
        ("0.9.0", "1.3.2", "supported"),
    ]


@pytest.mark.parametrize(
    ("named", "kuberay", "expected"),
    [
        ("1.6.2", "1.6.2", "pinned"),
        ("1.6.0", "1.6.2", "supported"),
        ("1.6.2", "1.6.0", "supported"),
        ("1.5.2", "1.6.2", "exploratory"),
        ("0.6.2", "1.6.3", "exploratory"),
    ],
)
def test_the_class_of_a_pair(named: str, kuberay: str, expected: str) -> None:
    assert klass(named, kuberay) == expected


def test_an_unknown_version_is_refused_in_one_line_with_the_known_ones_in_order(versions: Versions) -> None:
    with pytest.raises(UsageError) as caught:
        versions.pair(kueue="0.11.0")
    assert str(caught.value) == "kueue 0.11.0 is not in versions.toml; known: 0.9.0, 0.10.1, 0.19.2"


def test_an_unknown_product_is_refused_with_the_known_ones(versions: Versions) -> None:
    with pytest.raises(UsageError, match="known: etcd, kind, kuberay, kubernetes, kueue"):
        versions.release("volcano", "1")


def test_a_release_says_what_to_build(versions: Versions) -> None:
    release = versions.release_for("kueue", versions.pair(kueue="0.10.1"))
    assert (release.module, release.tag, release.checksum) == ("sigs.k8s.io/kueue", "v0.10.1", "h1:q10")
    assert versions.release_for("etcd", versions.default).version == "3.6.8"


def test_a_digest_is_the_same_for_the_same_content(versions: Versions) -> None:
    assert versions.digest(versions.default) == parse(TEXT).digest(versions.default)
    assert len(versions.digest(versions.default)) == 64


@pytest.mark.parametrize(
    ("old", "new"),
    [("recipe = 3", "recipe = 4"), ("h1:q19", "h1:x"), ("h1:e", "h1:x"), ("sigs.k8s.io/kueue", "example.org/kueue")],
)
def test_a_digest_changes_with_all_that_decides_what_runs(versions: Versions, old: str, new: str) -> None:
    changed = parse(TEXT.replace(old, new))
    assert changed.digest(changed.default) != versions.digest(versions.default)


def test_a_digest_stays_when_only_kind_clusters_change(versions: Versions) -> None:
    for old in ("h1:kind", "sha256:ab", "2.52.0"):
        changed = parse(TEXT.replace(old, f"{old}1"))
        assert changed.digest(changed.default) == versions.digest(versions.default)


def test_the_digest_of_kind_clusters_changes_with_all_that_is_pinned_for_them(versions: Versions) -> None:
    ours = versions.digest(versions.default, "kind")
    assert ours != versions.digest(versions.default)
    for old in ("h1:q19", "h1:kind", "sha256:ab", "2.52.0", "published/kueue"):
        changed = parse(TEXT.replace(old, f"{old}1"))
        assert changed.digest(changed.default, "kind") != ours
    assert versions.digest(versions.pair(kuberay="1.3.2"), "kind") != ours


def test_kind_goes_with_every_pair_and_a_node_image_with_its_kubernetes(versions: Versions) -> None:
    assert versions.release_for("kind", versions.pair(kueue="0.9.0")).checksum == "h1:kind"
    assert versions.node_image(versions.default) == "kindest/node:v1.34.11@sha256:ab"


def test_ray_goes_with_kuberay_and_what_is_not_recorded_is_said(versions: Versions) -> None:
    assert versions.ray_version(versions.default) == "2.52.0"
    with pytest.raises(UsageError, match=r"kuberay 1\.3\.2 has no ray .* recorded for: 1\.6\.2"):
        versions.ray_version(versions.pair(kuberay="1.3.2"))


def test_a_release_is_published_as_an_image_unless_its_manifests_name_it(versions: Versions) -> None:
    assert versions.image("kueue", versions.pair(kueue="0.9.0")) == "published/kueue:v0.9.0"
    assert versions.image("kuberay", versions.default) == ""


def test_a_digest_changes_with_the_pair_and_not_with_releases_that_do_not_run(versions: Versions) -> None:
    assert versions.digest(versions.default) != versions.digest(versions.pair(kueue="0.9.0"))
    changed = parse(TEXT.replace("h1:q9", "h1:x"))
    assert changed.digest(changed.default) == versions.digest(versions.default)
    assert versions.digest(replace(versions.default, klass="exploratory")) == versions.digest(versions.default)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("recipe = 3", "recipe =", "not TOML"),
        ("recipe = 3", "", "'recipe' is missing"),
        ("[go]", "[went]", "'go' is missing"),
        ('kuberay = "1.6.2"\netcd', 'kuberay = "1.7.0"\netcd', "kuberay 1.7.0 is not in"),
        (', kuberay = "1.2.2"', "", "kueue 0.10.1: expected `kuberay`"),
        ('etcd = "3.6.8"', 'etcd = "3.5.0"', "etcd 3.5.0 is not in"),
        ("h1:q9", "sha256:q9", "expected h1:"),
        ("[products.etcd]", "[products.other]", "product 'etcd' is not in"),
        ('kind = "0.33.0"', 'kind = "0.1.0"', "kind 0.1.0 is not in"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_the_reason(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(UsageError, match=message) as caught:
        parse(TEXT.replace(old, new), "my.toml")
    assert str(caught.value).startswith("my.toml: ")
