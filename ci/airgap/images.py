"""Images as archives that `docker load` and `ctr images import` read, written without either.

The format is that of `docker save`: layers as tar files, one JSON file of configuration per image, and manifest.json.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ci.airgap.layers import TAR, Output, layer_digest
from ci.airgap.workshop import Part, Workshop
from raykueue.toolchain.recipe import go_platform


@dataclass(frozen=True, slots=True)
class Image:
    """One image: its name, its layers from the lowest up, and how it runs."""

    reference: str
    layers: tuple[Part, ...]
    run: Mapping[str, Any] = field(default_factory=dict)
    """Entrypoint, Cmd, Env, User, WorkingDir, StopSignal: as in an image's configuration."""


def configuration(image: Image, digests: Iterable[str]) -> bytes:
    """The image's configuration, whose digest is the image's id. It holds no date: the same input is the same image."""
    system, architecture = go_platform()
    content = {
        "architecture": architecture,
        "os": system,
        "config": dict(image.run),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
    }
    return json.dumps(content, sort_keys=True).encode()


def image_id(shop: Workshop, image: Image) -> str:
    """`sha256:…`, as `docker image inspect` shows it."""
    return f"sha256:{hashlib.sha256(configuration(image, _digests(shop, image))).hexdigest()}"


def write_archive(shop: Workshop, images: Iterable[Image], out: Output) -> None:
    """Writes one archive with all of these images; layers that they share are in it once."""
    manifest = []
    written = set()
    with tarfile.open(fileobj=out, mode="w|") as archive:  # type: ignore[call-overload] # it only writes
        for image in images:
            digests = _digests(shop, image)
            config = configuration(image, digests)
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add(archive, name, config)
            for layer, digest in zip(image.layers, digests, strict=True):
                if digest not in written:
                    archive.add(shop.path(layer) / TAR, f"{digest}.tar")
                    written.add(digest)
                    shop.tick()
            layers = [f"{digest}.tar" for digest in digests]
            manifest.append({"Config": name, "RepoTags": [image.reference], "Layers": layers})
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def _digests(shop: Workshop, image: Image) -> list[str]:
    return [layer_digest(shop, layer) for layer in image.layers]


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
