"""Layers from Debian packages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from ci.airgap.layers import command_layer, tree_layer
from ci.airgap.workshop import Part, Workshop

SUITE = "bookworm"
"""Its systemd runs on cgroup v1 as well, which the next release's refuses; its Python is one that Ray supports."""
BASE = ("ca-certificates", "conntrack", "iptables", "kmod", "nftables", "procps")
"""In every image that is no single binary: what kube-proxy calls, and what helps to look inside."""
_SECONDS = 1800.0

_NO_SERVICES = "#!/bin/sh\n# No service is started while packages are installed.\nexit 101\n"
_APT = """
apt() { apt-get -qq -o Acquire::https::CAInfo=/tmp/authorities.crt -o Dpkg::Options::=--force-unsafe-io "$@"; }
[ -e /tmp/authorities.crt ] || apt() { apt-get -qq -o Dpkg::Options::=--force-unsafe-io "$@"; }
apt update
apt install --yes --no-install-recommends @PACKAGES@
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb /var/cache/apt/*.bin /var/log/*
"""


def mirror() -> str:
    """RAYKUEUE_DEBIAN_MIRROR, or nothing: then debootstrap's own."""
    return os.environ.get("RAYKUEUE_DEBIAN_MIRROR", "")


def base() -> Part:
    """A minimal Debian."""

    def grow(shop: Workshop, root: Path) -> None:
        arguments = ["--variant=minbase", f"--include={','.join(BASE)}", SUITE, str(root)]
        shop.call(["debootstrap", *arguments, *filter(None, [mirror()])], _SECONDS)
        for folder in ("var/lib/apt/lists", "var/cache/apt", "var/log"):
            for path in (root / folder).iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (root / "var/cache/apt/archives/partial").mkdir(parents=True)
        policy = root / "usr/sbin/policy-rc.d"
        policy.write_text(_NO_SERVICES, encoding="utf-8")
        policy.chmod(0o755)

    inputs = {"suite": SUITE, "packages": BASE, "mirror": mirror(), "policy": _NO_SERVICES}
    return tree_layer("debian", grow, inputs=inputs, what=f"fetching Debian {SUITE}", minutes=1.2)


def packages(name: str, below: Part, names: Sequence[str], minutes: float, then: str = "") -> Part:
    """More packages on top of it, and a script that runs afterwards."""
    script = _APT.replace("@PACKAGES@", " ".join(names)) + then
    what = f"installing the Debian packages of {name}"
    return command_layer(name, script, below=[below], what=what, minutes=minutes, inputs={})
