"""Where versions.toml is read."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from raykueue.errors import UsageError
from raykueue.model.versions import Versions, parse


def load_versions(path: Path | None = None) -> Versions:
    """The versions.toml of the package, or another file of the same form.

    Raises:
        UsageError: the file can't be read or understood.
    """
    if path is None:
        return parse(resources.files("raykueue").joinpath("versions.toml").read_text(encoding="utf-8"))
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected a file of the form of versions.toml") from error
