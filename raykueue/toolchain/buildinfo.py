"""What a Go program was built from, as the Go linker has written it into the file: modules, versions and checksums.

The format is Go's own (debug/buildinfo: `read`, and cmd/go/internal/modload `ModInfoProg`, which puts 16 bytes before
and after the modules so that they can be found). Reading it takes some hundredths of a second and no Go client.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

from raykueue.errors import ToolchainError

_MAGIC = b"\xff Go buildinf:"
_ALIGNED = 16
_HEADER = 32
_INLINE = 0x2
"""Flag: both strings follow the header, as from Go 1.18 on."""
_SENTINEL = 16


@dataclass(frozen=True, slots=True)
class Module:
    """A module that went into a program."""

    version: str
    """With the leading v."""
    checksum: str
    """"h1:…"; empty if Go did not write one, as for what lay in a folder."""


def modules_of(program: Path) -> dict[str, Module]:
    """Path of each module that a Go program was built from, to its version and checksum; what was replaced is left out.

    Raises:
        ToolchainError: the file can't be read, or is no Go program with modules.
    """
    try:
        with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            text = _text(content)
    except (OSError, ValueError) as error:
        raise ToolchainError(f"{program}: it can't be read as a program ({error})") from error
    except (IndexError, UnicodeDecodeError) as error:
        raise ToolchainError(f"{program}: what it says of its build is damaged ({error})") from error
    if text is None:
        raise ToolchainError(f"{program}: it is no Go program that says what it was built from")
    return _parsed(text)


def _text(content: mmap.mmap) -> str | None:
    at = content.find(_MAGIC)
    while at != -1 and at % _ALIGNED:  # the bytes also stand where Go's own reader of this looks for them
        at = content.find(_MAGIC, at + 1)
    if at == -1 or not content[at + len(_MAGIC) + 1] & _INLINE:
        return None
    _, end = _string(content, at + _HEADER)  # Go's version
    modules, _ = _string(content, end)
    return modules[_SENTINEL:-_SENTINEL].decode() if len(modules) > 2 * _SENTINEL else None


def _string(content: mmap.mmap, at: int) -> tuple[bytes, int]:
    """(a string with its length before it as a varint, where it ends)."""
    size = shift = 0
    while True:
        byte = content[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return content[at : at + size], at + size


def _parsed(text: str) -> dict[str, Module]:
    modules: dict[str, Module] = {}
    last = ""
    for line in text.splitlines():
        kind, *words = line.split("\t")
        if kind in ("dep", "mod") and len(words) >= 2:
            last = words[0]
            modules[last] = Module(words[1], words[2] if len(words) > 2 else "")
        elif kind == "=>":  # in place of the module in the line before
            modules.pop(last, None)
    return modules
