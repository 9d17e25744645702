"""The images that kubeadm runs a cluster from, under the names that it gives them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ci.airgap.images import Image
from ci.airgap.layers import File, file_layer
from ci.airgap.programs import program
from ci.airgap.workshop import Part, Workshop
from raykueue.errors import ToolchainError

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BINARIES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd")
"""The toolchain's, each found by its name on the PATH of its image."""
OWN = ("coredns", "pause")
"""Built here, each the entrypoint of its image."""
_SECONDS = 30


def images(shop: Workshop, binaries: Mapping[str, Path], base: Part) -> dict[str, Image]:
    """name → image, of all that kubeadm names.

    Raises:
        ToolchainError: kubeadm names other images than these, or another CoreDNS than is pinned.
    """
    release = shop.versions.release_for("kubernetes", shop.pair)
    names = references(listed(binaries["kubeadm"], release.tag))
    pinned = shop.versions.release_for("coredns", shop.pair).tag
    if not names["coredns"].endswith(f":{pinned}"):
        raise ToolchainError(f"kubeadm {release.tag} names {names['coredns']}, versions.toml pins CoreDNS {pinned}")
    made = {}
    for name in BINARIES:
        file = from_toolchain(shop, name, binaries[name])
        layer = file_layer(f"image-{name}", {f"/usr/local/bin/{name}": file})
        # kube-proxy calls iptables.
        layers = (base, layer) if name == "kube-proxy" else (layer,)
        made[name] = Image(names[name], layers, {"Entrypoint": [f"/usr/local/bin/{name}"], "Env": [PATH]})
    for name in OWN:
        made[name] = single(shop, name, names[name])
    return made


def single(shop: Workshop, name: str, reference: str) -> Image:
    """An image of one of our own programs and nothing else."""
    part = program(name, shop.versions, shop.pair)
    file = File(shop.store.root / part.artifact.folder / part.artifact.file, part.artifact.key)
    layer = file_layer(f"image-{name}", {f"/{name}": file}, needs=[part])
    return Image(reference, (layer,), {"Entrypoint": [f"/{name}"], "Env": [PATH]})


def from_toolchain(shop: Workshop, name: str, path: Path) -> File:
    """A binary of the toolchain as a file of a layer."""
    return File(path, shop.toolchain.artifact(name, shop.pair).key)


def listed(kubeadm: Path, tag: str) -> list[str]:
    """What `kubeadm config images list` prints; it asks nobody when it is told the version.

    Raises:
        ToolchainError: it fails.
    """
    command = [str(kubeadm), "config", "images", "list", f"--kubernetes-version={tag}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise ToolchainError(f"`{' '.join(command)}` ended with code {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout.split()


def references(lines: Sequence[str]) -> dict[str, str]:
    """component → reference.

    Raises:
        ToolchainError: not exactly the components that are built here are named.
    """
    found = {line.rpartition("/")[2].partition(":")[0]: line for line in lines}
    if set(found) != {*BINARIES, *OWN}:
        raise ToolchainError(f"kubeadm names images of {sorted(found)}, expected {sorted((*BINARIES, *OWN))}")
    return found
