from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from raykueue.errors import ToolchainError, UsageError
from raykueue.model.versions import Release, Versions
from raykueue.toolchain.golang import Go, Module
from raykueue.toolchain.lock import check_form, load_versions, lock_text
from raykueue.toolchain.verify import verify

KUBERAY = "github.com/ray-project/kuberay/ray-operator"


class Registry(Go):
    """A Go client whose modules say what `versions` says, unless `lies` has another answer for a release."""

    versions: Versions
    lies: Mapping[str, str]

    def module(self, release: Release, folder: Path) -> Module:
        if self.lies.get(str(release)) == "checksum":
            raise ToolchainError(f"{release}: the checksum is another")
        source = folder / release.product / release.version
        if release.product == "kuberay":
            sample = source / "config" / "samples" / "ray-job.sample.yaml"
            sample.parent.mkdir(parents=True)
            ray = self.lies.get(str(release), self.versions.ray[release.version])
            sample.write_text(f"spec:\n  rayClusterSpec:\n    rayVersion: '{ray}' # of the containers\n")
        return Module(source, source / "go.mod")

    def describe(self, go_mod: Path, cwd: Path) -> Mapping[str, Any]:
        assert cwd.is_dir()
        version = go_mod.parent.name
        named = self.lies.get(f"kueue {version}", self.versions.named_by[version])
        other = {"Path": "example.org/other", "Version": "v1.0.0"}
        return {"Require": [other, {"Path": KUBERAY, "Version": f"v{named}"}]}


def wrong(folder: Path, lies: Mapping[str, str]) -> dict[str, str]:
    versions = load_versions()
    go = Registry(Path("go"), "1.26", "test", folder, lambda: None)
    object.__setattr__(go, "versions", versions)
    object.__setattr__(go, "lies", lies)
    verified = list(verify(versions, go, folder))
    assert [one.release for one in verified] == list(versions.releases)
    return {str(one.release): one.wrong for one in verified if one.wrong}


def test_what_is_as_it_stands_there_is_true(tmp_path: Path) -> None:
    assert wrong(tmp_path, {}) == {}


@pytest.mark.parametrize(
    ("release", "lie", "told"),
    [
        ("etcd 3.6.8", "checksum", "the checksum is another"),
        ("kueue 0.17.1", "1.6.1", "its go.mod names .* v1.6.1, versions.toml says kuberay = '1.6.0'"),
        ("kuberay 1.3.2", "2.9.0", "names Ray 2.9.0, versions.toml says ray = '2.41.0'"),
    ],
)
def test_whatever_differs_is_told_of_its_release_and_the_others_are_looked_at(
    tmp_path: Path, release: str, lie: str, told: str
) -> None:
    found = wrong(tmp_path, {release: lie})
    assert list(found) == [release]
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(found[release])


def test_a_sample_that_is_not_there_is_told(tmp_path: Path) -> None:
    found = wrong(tmp_path, {"kuberay 1.4.2": ""})
    assert "names Ray no version" in found["kuberay 1.4.2"]


def test_the_packages_own_file_has_the_form_of_its_schema() -> None:
    check_form()


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("recipe = 1", 'recipe = "1"', r"\$\.recipe"),
        ("recipe = 1", "recipe = 1\nextra = 1", "extra"),
        ('kueue = "0.19.2"', 'kueue = "latest"', r"\$\.default\.kueue"),
        ("h1:mPNzr37u0nwI7ikST5QQl5gg6EgtYOAvC9ZbTgywdN8=", "h1:short", r"0\.19\.2"),
        (', kuberay = "1.2.2"', "", r"0\.10\.1"),
        (', ray = "2.41.0"', ', rays = "2.41.0"', r"1\.3\.2"),
        ("@sha256:", "@sha512:", "node_image"),
        ('"0.8.0" = { sum', '"0.8.0" = { ray = "1.0", sum', r"0\.8\.0"),
        ("recipe = 1", "recipe =", "not TOML"),
    ],
)
def test_a_file_of_another_form_is_refused_with_the_place(tmp_path: Path, old: str, new: str, place: str) -> None:
    assert old in lock_text()
    file = tmp_path / "mine.toml"
    file.write_text(lock_text().replace(old, new))
    with pytest.raises(UsageError, match=place) as caught:
        check_form(file)
    assert str(caught.value).startswith(f"{file}: ")
