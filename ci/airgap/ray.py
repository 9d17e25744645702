"""The Ray image: Debian's Python, and Ray from the Python index, under the name that KubeRay's samples give it."""

from __future__ import annotations

import platform
import shutil
import sys
from pathlib import Path

from ci.airgap import debian
from ci.airgap.images import Image
from ci.airgap.layers import command_layer
from ci.airgap.workshop import Part, Workshop, artifact
from raykueue.ray.manifests import REPOSITORY

PYTHON = "3.11"
"""Of the Debian release; Ray has wheels for it from 2.7 on."""
PACKAGES = ("python3", "python3-pip", "python-is-python3", "wget")
"""KubeRay's probes call wget; `python` is what entrypoints in its samples say."""
_GLIBC = range(17, 37)
"""Minor versions of glibc 2 that wheels for the Debian release may ask for."""
_SECONDS = 3600.0

_INSTALL = """
pip install --quiet --break-system-packages --no-index --find-links=/mnt/wheels --root-user-action=ignore '@RAY@'
ray --version
useradd --create-home --uid 1000 --gid users ray
"""


def image(version: str, base: Part) -> Image:
    """Ray of this version."""
    requirement = f"ray[default]=={version}"
    wheels = _wheels(requirement)
    python = debian.packages("layer-python", base, PACKAGES, minutes=0.5)

    def provide(shop: Workshop, folder: Path) -> None:
        shutil.copytree(shop.path(wheels) / "wheels", folder / "wheels")

    installed = command_layer(
        f"layer-ray-{version}",
        _INSTALL.replace("@RAY@", requirement),
        below=[base, python],
        what=f"installing Ray {version}",
        minutes=1.0,
        inputs={"wheels": wheels.artifact.key},
        provide=provide,
        needs=[wheels],
    )
    run = {
        "Cmd": ["/bin/bash"],
        "User": "1000:100",
        "WorkingDir": "/home/ray",
        "Env": [
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/home/ray",
            "LC_ALL=C.UTF-8",
            # It would be sent to an address outside.
            "RAY_USAGE_STATS_ENABLED=0",
            # The dashboard gives each of its nine processes 30 s; on two busy cores they take longer, and it ends.
            "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT=120",
        ],
    }
    return Image(f"{REPOSITORY}:{version}", (base, python, installed), run)


def _wheels(requirement: str) -> Part:
    """Everything that pip would install, for the image's Python, by the machine's pip and its configuration."""
    machine = platform.machine()
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in _GLIBC]
    for_image = [f"--python-version={PYTHON}", *platforms, f"--platform=manylinux2014_{machine}"]

    def fill(shop: Workshop, folder: Path) -> None:
        target = folder / "wheels"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", str(target)]
        shop.call([*command, *for_image, requirement], _SECONDS)

    facts = {"requirement": requirement, "for": for_image}
    return Part(artifact(f"wheels-{requirement.partition('==')[2]}", facts), f"fetching {requirement}", 0.7, fill)
