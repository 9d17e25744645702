"""Where versions.toml is read, and its form checked."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from pathlib import Path

from raykueue.errors import UsageError
from raykueue.model.versions import Versions, parse


def load_versions(path: Path | None = None) -> Versions:
    """The versions.toml of the package, or another file of the same form.

    Raises:
        UsageError: the file can't be read or understood.
    """
    return parse(lock_text(path), _name(path))


def lock_text(path: Path | None = None) -> str:
    """The text of the versions.toml of the package, or of another file.

    Raises:
        UsageError: it can't be read.
    """
    if path is None:
        return resources.files("raykueue").joinpath("versions.toml").read_text(encoding="utf-8")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; expected a file of the form of versions.toml") from error


def check_form(path: Path | None = None) -> None:
    """Holds the file against versions.schema.json. `load_versions` leaves this to `raykueue versions verify` and the
    tests: the package's own file does not change between two starts.

    Raises:
        UsageError: the place in the file, and what is wrong there.
    """
    from jsonschema import Draft202012Validator  # a tenth of a second that no other command needs
    from jsonschema.exceptions import best_match

    schema = json.loads(Path(__file__).with_name("versions.schema.json").read_text(encoding="utf-8"))
    try:
        body = tomllib.loads(lock_text(path))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{_name(path)}: not TOML: {error}") from error
    wrong = best_match(Draft202012Validator(schema).iter_errors(body))
    if wrong is not None:
        raise UsageError(f"{_name(path)}: {wrong.json_path}: {wrong.message[:300]}")


def _name(path: Path | None) -> str:
    return "versions.toml" if path is None else str(path)
