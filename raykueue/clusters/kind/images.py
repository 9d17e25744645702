"""The images of a run in the nodes before anything asks for them: from the local Docker, else pulled once."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raykueue.clusters.kind.docker import Docker
from raykueue.errors import ClusterError
from raykueue.toolchain.store import full_disk


class Images:
    """Archives of images, kept by content: a later run has nothing to save."""

    def __init__(self, docker: Docker, folder: Path) -> None:
        self._docker = docker
        self._folder = folder

    def archive(self, reference: str) -> Path:
        """The archive of an image, saved if it is missing; older ones of the same name go.

        Raises:
            ClusterError: the image can't be had.
        """
        image = self._docker.image_id(reference)
        if not image:
            self._docker.pull(reference)
            image = self._docker.image_id(reference)
        name = re.sub(r"[^A-Za-z0-9.]+", "-", reference)
        path = self._folder / f"{name}-{image.removeprefix('sha256:')[:12]}.tar"
        if path.exists():
            return path
        partial = path.with_suffix(f".{os.getpid()}.partial")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._docker.save(reference, partial)
            partial.replace(path)
        except ClusterError as error:
            if "no space left" in str(error):
                raise ClusterError(str(full_disk(self._folder, str(error)))) from error
            raise
        except OSError as error:
            raise ClusterError(f"image archives are kept in {self._folder}, which failed: {error}") from error
        finally:
            partial.unlink(missing_ok=True)
        for old in self._folder.glob(f"{name}-*.tar"):
            if old != path and re.fullmatch(r"[0-9a-f]{12}", old.stem.removeprefix(f"{name}-")):
                old.unlink(missing_ok=True)
        return path

    def load(self, reference: str, archive: Path, driver: Any, nodes: Sequence[str]) -> None:
        """Loads an archive into those of the nodes that don't have its image: a node image may bring some."""
        image = f"sha256:{self._docker.image_id(reference).removeprefix('sha256:')}"
        without = [node for node in nodes if image not in self._docker.images_in(node).splitlines()]
        if without:
            driver.load_archive(archive, without)
