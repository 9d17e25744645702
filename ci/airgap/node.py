"""The node image: Debian, kind's own node files of the pinned release, Kubernetes' binaries, and preloaded images."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from ci.airgap import debian
from ci.airgap.images import Image, write_archive
from ci.airgap.kubernetes import PATH, from_toolchain, single
from ci.airgap.layers import command_layer, file_layer
from ci.airgap.places import SOURCES
from ci.airgap.programs import digest
from ci.airgap.workshop import Part, Workshop
from raykueue.errors import ToolchainError
from raykueue.model.node_images import own_image
from raykueue.model.versions import Release

PACKAGES = (
    # services, and what runs containers
    *("systemd", "containerd", "runc", "containernetworking-plugins"),
    # what kubelet, kube-proxy, kubeadm's checks and kind's entrypoint call
    *("ethtool", "iproute2", "jq", "mount", "util-linux", "curl", "socat"),
)
_TRIMMED = """
# As in kind's Dockerfile (images/base): nothing starts but what a node needs.
rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/* \\
    /lib/systemd/system/local-fs.target.wants/* /lib/systemd/system/basic.target.wants/* \\
    /lib/systemd/system/sockets.target.wants/*udev* /lib/systemd/system/sockets.target.wants/*initctl* \\
    /lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service
# Debian's sysctls belong to a machine, and this is none: they would change the one that it runs on.
rm -f /usr/lib/sysctl.d/* /etc/sysctl.d/*
echo ReadKMsg=no >> /etc/systemd/journald.conf
ln -sf /lib/systemd/systemd /sbin/init
"""


def reference_of(kubernetes: Release) -> str:
    """The name of the node image with that release."""
    return own_image(kubernetes.version)


def packages(base: Part) -> Part:
    """The layer of Debian packages."""
    return debian.packages("layer-node", base, PACKAGES, minutes=0.8, then=_TRIMMED)


BINARIES = ("kubelet", "kubeadm", "kubectl")
KIND_FILES = Path("images/base/files")
"""In kind's module: its entrypoint, units and configuration, which are used as they are but for the lines below."""
_LEFT_OUT = ("LICENSES", "usr/local/bin/clean-install", "etc/systemd/system/containerd-fuse-overlayfs.service")
_LEFT_OUT_UNIT = "etc/systemd/system/undo-mount-hacks.service"  # it would show what into-init hides
_SANDBOX = re.compile(r'sandbox_image = "[^"]*"')

_ASSEMBLE = """
cp --recursive --no-dereference --preserve=mode /mnt/files/. /
# Debian has them elsewhere than kind's files say.
for name in containerd ctr containerd-shim-runc-v2; do ln -s /usr/bin/$name /usr/local/bin/$name; done
mkdir -p /opt/cni /etc/kubernetes/manifests /etc/systemd/system/multi-user.target.wants
ln -s /usr/lib/cni /opt/cni/bin
for unit in containerd kubelet; do
    ln -s /etc/systemd/system/$unit.service /etc/systemd/system/multi-user.target.wants/$unit.service
done
# It would register formats of binaries with the machine's kernel.
ln -s /dev/null /etc/systemd/system/systemd-binfmt.service
# What every container gets: as in kind's Dockerfile.
ctr oci spec | jq '.hooks.createContainer = [{"path": "/kind/bin/mount-product-files.sh"}] | del(.process.rlimits)' \\
    > /etc/containerd/cri-base.json

# Images are put into containerd's store, not unpacked: as `kind build node-image` does.
containerd > /mnt/containerd.log 2>&1 &
daemon=$!
tries=0
until ctr version > /dev/null 2>&1; do
    tries=$((tries + 1))
    if [ $tries -gt 300 ] || ! kill -0 $daemon 2> /dev/null; then tail -5 /mnt/containerd.log >&2; exit 1; fi
    sleep 0.1
done
ctr --namespace=k8s.io images import --all-platforms --no-unpack --digests /mnt/images.tar > /dev/null
kill $daemon
wait $daemon || true
"""


def image(shop: Workshop, paths: Mapping[str, Path], base: Part, preloaded: Mapping[str, Image]) -> Image:
    """The node image of the pair's Kubernetes, with these images in it; `paths` are the toolchain's."""
    release = shop.versions.release_for("kubernetes", shop.pair)
    debian_packages = packages(base)
    files = {f"/usr/bin/{name}": from_toolchain(shop, name, paths[name]) for name in BINARIES}
    files["/usr/local/bin/crictl"] = from_toolchain(shop, "crictl", paths["crictl"])
    binaries = file_layer("node-binaries", files)
    network = single(shop, "nodenet", "")
    network = Image(f"raykueue.local/nodenet:{network.layers[0].artifact.key[:12]}", network.layers, network.run)
    inside = [*preloaded.values(), network]
    layers = [layer for one in inside for layer in one.layers]

    def provide(shop: Workshop, folder: Path) -> None:
        texts = {"kind/version": release.tag, "@IMAGE@": network.reference}
        node_files(paths["kind-sources"] / KIND_FILES, preloaded["pause"].reference, texts, folder / "files")
        with (folder / "images.tar").open("wb") as out:
            write_archive(shop, inside, out)

    inputs = {
        "kind": shop.toolchain.artifact("kind-sources", shop.pair).key,
        "own": digest(SOURCES / "node-files"),
        "version": release.tag,
        "images": [[one.reference, one.run, [layer.artifact.key for layer in one.layers]] for one in inside],
    }
    assembled = command_layer(
        "layer-node-assembled",
        _ASSEMBLE,
        below=[base, debian_packages],
        what="assembling the node image",
        minutes=0.7,
        inputs=inputs,
        provide=provide,
        needs=layers,
    )
    run = {
        "Entrypoint": ["/usr/local/bin/entrypoint", "/usr/local/bin/into-init", "/sbin/init"],
        "Env": ["container=docker", PATH],
        "StopSignal": "SIGRTMIN+3",
    }
    reference = reference_of(release)
    return Image(reference, (base, debian_packages, binaries, assembled), run)


def node_files(kind: Path, pause: str, texts: Mapping[str, str], target: Path) -> None:
    """kind's files and ours, merged in a folder; `texts`: the content of kind/version, and the value of @IMAGE@."""
    shutil.copytree(kind, target, ignore=_without(kind))
    for script in (*(target / "usr/local/bin").iterdir(), *(target / "kind/bin").iterdir()):
        script.chmod(0o755)
    shutil.copytree(SOURCES / "node-files", target, dirs_exist_ok=True)
    config = target / "etc/containerd/config.toml"
    text, count = _SANDBOX.subn(f'sandbox_image = "{pause}"', config.read_text(encoding="utf-8"))
    if count != 1:
        raise ToolchainError(f"kind's {config.name} names {count} sandbox images, expected one")
    config.write_text(text, encoding="utf-8")
    network = target / "kind/manifests/default-cni.yaml"
    network.write_text(network.read_text(encoding="utf-8").replace("@IMAGE@", texts["@IMAGE@"]), encoding="utf-8")
    (target / "kind/version").write_text(texts["kind/version"], encoding="utf-8")


def _without(root: Path) -> Callable[[str, list[str]], set[str]]:
    left_out = {*_LEFT_OUT, _LEFT_OUT_UNIT}

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if str(Path(folder, name).relative_to(root)) in left_out}

    return ignored
