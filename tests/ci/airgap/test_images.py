from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from ci.airgap import layers
from ci.airgap.images import Image, configuration, image_id, write_archive
from ci.airgap.layers import File, file_layer, layer_digest, write_tree
from ci.airgap.workshop import Part, Workshop


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "binary"
    path.write_text("a program")
    return path


def layer(name: str, source: Path, identity: str = "1", mode: int = 0o755) -> Part:
    return file_layer(name, {"/usr/local/bin/program": File(source, identity, mode)})


def content(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None, f"{name} is no file"
    return file.read()


def test_a_layer_of_files_holds_them_as_root_sees_them(shop: Workshop, source: Path) -> None:
    part = layer("one", source)
    shop.make([part])
    with tarfile.open(shop.path(part) / layers.TAR) as archive:
        entries = {entry.name: entry for entry in archive.getmembers()}
        assert content(archive, "usr/local/bin/program") == b"a program"
    assert set(entries) == {"tmp", "usr/local/bin/program"}
    program = entries["usr/local/bin/program"]
    assert (program.mode, program.uid, program.mtime) == (0o755, 0, 0)
    assert entries["tmp"].mode == 0o1777


def test_a_layer_is_another_when_the_identity_or_the_mode_of_a_file_is(source: Path) -> None:
    keys = {layer("one", source, *change).artifact.key for change in [("1", 0o755), ("2", 0o755), ("1", 0o644)]}
    assert len(keys) == 3
    assert layer("one", source).artifact.key == layer("one", source).artifact.key


def test_the_same_input_is_the_same_image(shop: Workshop, source: Path) -> None:
    part = layer("one", source)
    shop.make([part])
    image = Image("a:1", (part,), {"Entrypoint": ["/program"]})
    assert image_id(shop, image) == image_id(shop, Image("b:2", (part,), {"Entrypoint": ["/program"]}))
    assert image_id(shop, image) != image_id(shop, Image("a:1", (part,), {"Entrypoint": ["/other"]}))
    content = json.loads(configuration(image, ["ab"]))
    assert content["rootfs"]["diff_ids"] == ["sha256:ab"]
    assert content["os"] == "linux"


def test_an_archive_holds_images_with_shared_layers_once(shop: Workshop, source: Path) -> None:
    shared, own = layer("shared", source), file_layer("own", {"/x": File(source, "1")})
    shop.make([shared, own])
    images = [Image("example/one:1", (shared,)), Image("example/two:1", (shared, own), {"User": "7"})]
    out = io.BytesIO()
    write_archive(shop, images, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        names = archive.getnames()
        read = {name: content(archive, name) for name in names}
    manifest = json.loads(read["manifest.json"])
    assert [entry["RepoTags"] for entry in manifest] == [["example/one:1"], ["example/two:1"]]
    assert len(names) == len(set(names)) == 5  # two layers, two configurations, one manifest
    for entry, image in zip(manifest, images, strict=True):
        assert f"sha256:{hashlib.sha256(read[entry['Config']]).hexdigest()}" == image_id(shop, image)
        diff_ids = json.loads(read[entry["Config"]])["rootfs"]["diff_ids"]
        assert diff_ids == [f"sha256:{hashlib.sha256(read[name]).hexdigest()}" for name in entry["Layers"]]


def test_the_digest_of_a_layer_is_that_of_its_tar(shop: Workshop, source: Path) -> None:
    part = layer("one", source)
    shop.make([part])
    assert layer_digest(shop, part) == hashlib.sha256((shop.path(part) / layers.TAR).read_bytes()).hexdigest()


def test_what_an_overlay_deleted_is_deleted_in_the_layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "tree"
    for name in ("etc/kept", "etc/gone", "new/file"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / "etc/link").symlink_to("kept")
    # What only root can make: a device that stands for a deleted file, and the attribute of a folder that is all new.
    monkeypatch.setattr(layers, "_deleted", lambda path: path.name == "gone")
    monkeypatch.setattr(layers, "_opaque", lambda path: path.name == "new")
    out = io.BytesIO()
    write_tree(root, out)
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        names = archive.getnames()
        assert archive.getmember("etc/link").linkname == "kept"
        assert archive.getmember("etc/.wh.gone").size == 0
    assert names == ["etc", "new", "etc/.wh.gone", "etc/kept", "etc/link", "new/.wh..wh..opq", "new/file"]
