"""Layers of images: made from files, or by running commands on top of other layers, without a container runtime.

A layer's artifact holds `layer.tar`, as image formats want it, and `tree/`, which other layers are mounted on.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ci.airgap.places import SOURCES
from ci.airgap.workshop import Part, Workshop, artifact
from raykueue.toolchain.store import MANIFEST

TAR = "layer.tar"
TREE = "tree"
_CHROOT = 1800.0
"""Seconds for the commands of one layer: about ten times what the longest took."""
_CHUNK = 1 << 20


class Output(Protocol):
    """What a tar archive is written to."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True, slots=True)
class File:
    """One file of a layer."""

    source: Path
    identity: str
    """What stands for its content in the layer's key: a digest, or the key of the artifact that it is."""
    mode: int = 0o755


def file_layer(name: str, files: Mapping[str, File], needs: Sequence[Part] = ()) -> Part:
    """A layer of just these files, by their path in the image ("/manager"), and a folder for temporary ones."""
    facts = {"files": {path: [file.identity, file.mode] for path, file in files.items()}}

    def fill(_: Workshop, target: Path) -> Mapping[str, Any]:
        with (target / TAR).open("wb") as out, tarfile.open(fileobj=out, mode="w") as archive:
            temporary = tarfile.TarInfo("tmp")
            temporary.type, temporary.mode = tarfile.DIRTYPE, 0o1777
            archive.addfile(temporary)
            for path, file in files.items():
                entry = tarfile.TarInfo(path.strip("/"))
                entry.size, entry.mode = file.source.stat().st_size, file.mode
                with file.source.open("rb") as content:
                    archive.addfile(entry, content)
        return {"digest": digest_of(target / TAR)}

    return Part(artifact(name, facts), f"packing {name}", 0.1, fill, tuple(needs))


def command_layer(
    name: str,
    script: str,
    *,
    below: Sequence[Part],
    what: str,
    minutes: float,
    inputs: Mapping[str, Any],
    provide: Callable[[Workshop, Path], None] = lambda _shop, _folder: None,
    needs: Sequence[Part] = (),
) -> Part:
    """A layer that a shell script makes on top of others, in a chroot with the machine's network.

    `provide` puts into a folder what the script finds in /mnt; `inputs` stands for that in the layer's key.
    """
    facts = {"script": script, "below": [part.artifact.key for part in below], "inputs": inputs}

    def fill(shop: Workshop, target: Path) -> Mapping[str, Any]:
        # Next to the cache's other parts: an overlay's folders must be on one file system.
        scratch = target / "scratch"
        provided = scratch / "provided"
        for folder in (target / TREE, scratch / "work", provided):
            folder.mkdir(parents=True)
        provide(shop, provided)
        lower = ":".join(str(shop.path(part) / TREE) for part in reversed(below))
        mount = f"lowerdir={lower},upperdir={target / TREE},workdir={scratch / 'work'}"
        (scratch / "script").write_text(script, encoding="utf-8")
        namespaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--")
        shop.call([*namespaces, SOURCES / "in-layers", mount, provided, scratch / "script"], _CHROOT)
        shutil.rmtree(scratch)
        with (target / TAR).open("wb") as out:
            write_tree(target / TREE, out, shop.tick)
        return {"digest": digest_of(target / TAR)}

    return Part(artifact(name, facts), what, minutes, fill, (*below, *needs))


def tree_layer(
    name: str, grow: Callable[[Workshop, Path], None], *, inputs: Mapping[str, Any], what: str, minutes: float
) -> Part:
    """A lowest layer: whatever `grow` puts into the folder that it is given."""

    def fill(shop: Workshop, target: Path) -> Mapping[str, Any]:
        grow(shop, target / TREE)
        with (target / TAR).open("wb") as out:
            write_tree(target / TREE, out, shop.tick)
        return {"digest": digest_of(target / TAR)}

    return Part(artifact(name, {"inputs": inputs}), what, minutes, fill)


def layer_digest(shop: Workshop, layer: Part) -> str:
    """sha256 (hex) of the layer's tar, the layer's name in an image."""
    manifest = json.loads((shop.path(layer) / MANIFEST).read_text(encoding="utf-8"))
    return str(manifest["digest"])


def digest_of(path: Path) -> str:
    """sha256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_tree(root: Path, out: Output, tick: Callable[[], None] = lambda: None) -> None:
    """Writes an overlay's upper folder as a layer: what the overlay deleted becomes the format's own marks.

    An overlay says "deleted" by a character device 0/0 and "all new" by an attribute of a folder; an image says it by
    files named `.wh.NAME` and `.wh..wh..opq` (github.com/opencontainers/image-spec, layer.md).
    """
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload] # it only writes
        for folder, folders, files in os.walk(root):
            folders.sort()
            tick()
            here = Path(folder)
            if here != root and _opaque(here):
                _mark(archive, here.relative_to(root) / ".wh..wh..opq")
            for name in sorted((*folders, *files)):
                path = here / name
                inside = path.relative_to(root)
                if _deleted(path):
                    _mark(archive, inside.with_name(f".wh.{name}"))
                elif not stat.S_ISSOCK(path.lstat().st_mode):
                    archive.add(path, str(inside), recursive=False)


def _deleted(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _opaque(folder: Path) -> bool:
    try:
        return os.getxattr(folder, "trusted.overlay.opaque") == b"y"
    except OSError:
        return False


def _mark(archive: tarfile.TarFile, path: Path) -> None:
    archive.addfile(tarfile.TarInfo(str(path)), io.BytesIO())
