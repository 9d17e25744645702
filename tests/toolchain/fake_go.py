"""A Go client that builds nothing: a shell script that does what a test tells it, and keeps a record."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Builtins of the shell only: nothing else is on the PATH, and a start takes a millisecond.
_SCRIPT = r"""#!/bin/sh
home='{home}'
printf '%s\n' "$*" >> "$home/calls"
show() {{ while IFS= read -r line || [ -n "$line" ]; do printf '%s\n' "$line"; done < "$1"; }}
case "$1" in mod) command="mod-$2" ;; *) command="$1" ;; esac
if [ -e "$home/fail/$command" ]; then show "$home/fail/$command" >&2; exit 1; fi
for last; do :; done
case "$command" in
version) show "$home/version" ;;
mod-download) show "$home/modules/$last" ;;
mod-edit) show "$home/go.mod.json" ;;
get) echo sums > go.sum ;;
build)
  export -p > "$home/environment"
  if [ -e "$home/release" ]; then
    echo made > "$GOTMPDIR/half"
    exec 3> "$home/started"
    printf x >&3
    # A compiler of its own, as Go starts them; both hold `started` open for as long as they live.
    ( read -r line < "$home/release" )
  fi
  # build -o FILE …
  echo a binary > "$3" ;;
esac
"""


@dataclass
class FakeGo:
    """What the script does, and what it was called with."""

    home: Path

    @property
    def path(self) -> Path:
        return self.home / "bin" / "go"

    def install(self) -> None:
        """Writes the script, and the one module that all downloads bring."""
        self.path.parent.mkdir(parents=True)
        self.path.write_text(_SCRIPT.format(home=self.home))
        self.path.chmod(0o755)
        (self.home / "go.mod.json").write_text(json.dumps({"Go": "1.26.0"}))
        for name in ("config/crd", "kustomize/stage/pod"):
            folder = self.home / "module" / name
            folder.mkdir(parents=True)
            (folder / "file.yaml").write_text(name)
            (folder / "file.yaml").chmod(0o444)
            folder.chmod(0o555)

    def version(self, version: str) -> None:
        """What it says of itself."""
        (self.home / "version").write_text(f"go version go{version} linux/amd64\n")

    def sums(self, sums: Mapping[str, str]) -> None:
        """The checksums of the modules ("path@version") that it can download."""
        for target, checksum in sums.items():
            path = self.home / "modules" / target
            path.parent.mkdir(parents=True, exist_ok=True)
            answer: dict[str, Any] = {"Sum": checksum, "GoMod": "go.mod", "Dir": str(self.home / "module")}
            path.write_text(json.dumps(answer))

    def fail(self, command: str, text: str) -> None:
        """Makes a command ("build", "get", "mod-download") fail with this on standard error."""
        (self.home / "fail").mkdir(exist_ok=True)
        (self.home / "fail" / command).write_text(text)

    def recover(self) -> None:
        """Makes all commands work again."""
        shutil.rmtree(self.home / "fail")

    def block(self) -> None:
        """Makes a build wait: it opens `started`, writes one byte, and goes on when `release` is opened and closed."""
        os.mkfifo(self.home / "started")
        os.mkfifo(self.home / "release")

    def calls(self, command: str = "") -> list[str]:
        """The arguments of each call that begin like this."""
        record = self.home / "calls"
        lines = record.read_text().splitlines() if record.exists() else []
        return [line for line in lines if line.startswith(command)]

    def environment(self) -> list[str]:
        """The environment of the last build, as the shell writes it: NAME='value'."""
        return [line.removeprefix("export ") for line in (self.home / "environment").read_text().splitlines()]
