"""Images from the cache into the private daemon."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from typing import IO, cast

from ci.airgap.images import Image, image_id, write_archive
from ci.airgap.workshop import Workshop
from raykueue.errors import InfraError

_SECONDS = 60
"""For the daemon to answer after it was given everything."""


def absent(shop: Workshop, images: Iterable[Image], environment: Mapping[str, str]) -> list[Image]:
    """Those that the daemon doesn't have, or has with another content."""
    images = list(images)
    command = ["docker", "image", "inspect", *(image.reference for image in images)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False)
    there = {tag: found["Id"] for found in json.loads(done.stdout or "[]") for tag in found["RepoTags"]}
    return [image for image in images if there.get(image.reference) != image_id(shop, image)]


def load(shop: Workshop, images: Iterable[Image], environment: Mapping[str, str]) -> None:
    """Gives them to the daemon, as one stream; nothing if there are none.

    Raises:
        InfraError: it refuses.
    """
    images = list(images)
    if not images:
        return
    process = subprocess.Popen(
        ["docker", "load", "--quiet"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    stream = cast(IO[bytes], process.stdin)
    try:
        write_archive(shop, images, stream)
    except BrokenPipeError:
        pass  # it says why
    except BaseException:
        process.kill()
        raise
    answer, _ = process.communicate(timeout=_SECONDS)
    if process.returncode:
        raise InfraError(f"docker load: exit code {process.returncode}: {answer.decode(errors='replace')[-800:]}")
