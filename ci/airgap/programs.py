"""Our own small Go programs, built from this folder's sources by the toolchain's Go."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ci.airgap.places import SOURCES
from ci.airgap.workshop import Part, Workshop, artifact
from raykueue.model.versions import Pair, Release, Versions
from raykueue.toolchain import recipe
from raykueue.toolchain.golang import BUILD

REQUIRES: Mapping[str, str] = {
    "pause": "",
    "ocishim": "",
    "portproxy": "",
    "nonames": "",
    "nodenet": "kubernetes",  # of its netlink client's version
    "coredns": "coredns",
}
"""program → the pinned product whose modules it is built with; "" = Go's own library only."""
_MINUTES = {"coredns": 2.0}


def program(name: str, versions: Versions, pair: Pair) -> Part:
    """The part that is this program's binary."""
    folder = SOURCES / "go" / name
    release = versions.release_for(REQUIRES[name], pair) if REQUIRES[name] else None
    facts = {
        "sources": digest(folder),
        "requires": [release.module, release.tag, release.checksum] if release else [],
        "platform": recipe.go_platform(),
    }

    def fill(shop: Workshop, target: Path) -> None:
        _build(shop, folder, release, target / name)

    return Part(artifact(name, facts, name), f"building {name}", _MINUTES.get(name, 0.1), fill)


def digest(folder: Path) -> str:
    """sha256 (hex) over all files of a folder, with their names and whether they can be run."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            mode = path.stat().st_mode & 0o111
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{path.relative_to(folder)}\0{bool(mode)}\0{content}\n".encode())
    return whole.hexdigest()


def _build(shop: Workshop, sources: Path, release: Release | None, target: Path) -> None:
    go = shop.go()
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        module = Path(scratch, "module")
        shutil.copytree(sources, module)
        (module / "go.mod").write_text(_go_mod(shop, release, module), encoding="utf-8")
        # -mod=mod: go.mod says which release, Go fills in which versions that release itself asks for.
        go.call(
            ["build", "-mod=mod", "-trimpath", "-ldflags", "-s -w", "-o", target, "."], module, BUILD, Path(scratch)
        )


def _go_mod(shop: Workshop, release: Release | None, folder: Path) -> str:
    if release is None:
        return f"module raykueue\ngo {shop.versions.go_minimum}\n"
    content: Mapping[str, Any] = shop.go().describe(shop.go().module(release, folder).go_mod, folder)
    return recipe.wrapper_module(content, release) + f"require {release.module} {release.tag}\n"
