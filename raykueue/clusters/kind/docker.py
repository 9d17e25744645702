"""What is asked of Docker: whether it answers, its images, the containers of one cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raykueue.clusters.kind.commands import CommandFailed, Commands
from raykueue.errors import ClusterError

CLUSTER_LABEL = "io.x-k8s.kind.cluster"
"""Carried by every node of a kind cluster (kind pkg/cluster/internal/providers/docker/constants.go@v0.33.0)."""
_ASK_SECONDS = 20.0
_NODE_SECONDS = 60.0
_PULL_SECONDS = 20 * 60.0
_SAVE_SECONDS = 10 * 60.0


class Docker:
    """The daemon that the user's environment names: DOCKER_HOST, DOCKER_CONTEXT, or the machine's own."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def info(self) -> Mapping[str, Any]:
        """What the daemon says of itself.

        Raises:
            ClusterError: it does not answer; one line that says what to do.
        """
        argv = ["docker", "info", "--format", "{{json .}}"]
        where = self._commands.environment.get("DOCKER_HOST", "the default context")
        try:
            about: dict[str, Any] = json.loads(self._commands.run("asking Docker", argv, _ASK_SECONDS))
        except (CommandFailed, ValueError) as error:
            raise _silent(where, error) from None
        # The client answers for itself when the daemon doesn't: with code 0, in some versions.
        if problems := about.get("ServerErrors"):
            raise _silent(where, ClusterError(problems[0])) from None
        return about

    def image_id(self, reference: str) -> str:
        """The id of a local image; empty if there is none of that name."""
        argv = ["docker", "image", "inspect", "--format", "{{.Id}}", reference]
        try:
            return self._commands.run(f"looking for image {reference}", argv, _ASK_SECONDS).strip()
        except CommandFailed as error:
            if "no such image" in error.text.lower():
                return ""
            raise

    def pull(self, reference: str) -> None:
        """Pulls an image."""
        argv = ["docker", "pull", "--quiet", reference]
        self._commands.persistently(f"pulling image {reference}", argv, _PULL_SECONDS, undo=lambda: None)

    def save(self, reference: str, archive: Path) -> None:
        """Writes a local image into an archive."""
        argv = ["docker", "save", "--output", str(archive), reference]
        self._commands.run(f"saving image {reference}", argv, _SAVE_SECONDS)

    def images_in(self, node: str) -> str:
        """What the container runtime of a node holds: names, one a line."""
        argv = ["docker", "exec", node, "ctr", "--namespace", "k8s.io", "images", "list", "--quiet"]
        return self._commands.run(f"looking for images in node {node}", argv, _ASK_SECONDS)

    def kill(self, node: str) -> None:
        """Ends a node at once."""
        self._commands.run(f"ending node {node}", ["docker", "kill", node], _NODE_SECONDS)

    def start(self, node: str) -> None:
        """Starts a node that was ended."""
        self._commands.run(f"starting node {node}", ["docker", "start", node], _NODE_SECONDS)

    def restart_unit(self, node: str, unit: str) -> None:
        """Restarts one of systemd's services in a node."""
        argv = ["docker", "exec", node, "systemctl", "restart", unit]
        self._commands.run(f"restarting {unit} in node {node}", argv, _NODE_SECONDS)

    def nodes(self, cluster: str) -> dict[str, str]:
        """{container: state} of one kind cluster: running, exited, …"""
        argv = ["docker", "ps", "--all", "--filter", f"label={CLUSTER_LABEL}={cluster}"]
        argv += ["--format", "{{.Names}} {{.State}}"]
        lines = self._commands.run(f"looking for nodes of {cluster}", argv, _ASK_SECONDS).splitlines()
        return dict(line.split(" ", 1) for line in lines if " " in line)


def _silent(where: str, error: Exception) -> ClusterError:
    said = error.text if isinstance(error, CommandFailed) else str(error)
    last = said.splitlines()[-1].strip() if said.strip() else "it said nothing"
    return ClusterError(
        f"Docker does not answer ({where}): {last} Start it, or set DOCKER_HOST; `--cluster embedded` needs no Docker"
    )
