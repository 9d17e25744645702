"""How an embedded cluster runs the simulated Ray as one of its processes."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from raykueue.errors import UsageError

CONFIG_NAME = "ray.json"
SOCKET_NAME = "ray.sock"
READY_LINE = "ready"
"""The one line on stdout, when the port is served and both watches are established."""


@dataclass(frozen=True, slots=True)
class RayConfig:
    """What the process reads from `<folder>/ray.json`."""

    kubeconfig: str
    """Of an identity that may list and watch pods and RayJobs everywhere, and get and patch pods/status."""
    port: int
    """On loopback; KubeRay gets it as HTTP_PROXY."""
    control: str
    """Path of the control socket."""
    context: str | None = None

    def text(self) -> str:
        """The content of the file."""
        return json.dumps(asdict(self), indent=2) + "\n"


@dataclass(frozen=True, slots=True)
class RayProcess:
    """How the process is started. It ends by SIGTERM, or when its stdin is closed: give it a pipe, not /dev/null."""

    argv: tuple[str, ...]
    config_path: Path
    """To be written before the start, with `config.text()` as its content."""
    config: RayConfig
    kuberay_env: dict[str, str]
    """What KubeRay's environment needs so that its dashboard calls arrive here."""


def ray_process(folder: Path, kubeconfig: Path, port: int, context: str | None = None) -> RayProcess:
    """The simulated Ray of the cluster that lives in `folder`; nothing is read or written."""
    return RayProcess(
        argv=(sys.executable, "-m", "raykueue.ray.simulated", "--folder", str(folder)),
        config_path=folder / CONFIG_NAME,
        config=RayConfig(str(kubeconfig), port, str(folder / SOCKET_NAME), context),
        kuberay_env={"HTTP_PROXY": f"http://127.0.0.1:{port}"},
    )


def read_config(folder: Path) -> RayConfig:
    """Of `<folder>/ray.json`.

    Raises:
        UsageError: there is none, or it isn't one.
    """
    path = folder / CONFIG_NAME
    try:
        return RayConfig(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{path} is not the simulated Ray's configuration: {error}") from error
