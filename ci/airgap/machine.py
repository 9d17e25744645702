"""How the machine is: what a daemon and its containers could have changed, so that it can be undone and checked."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

SYSCTLS = Path("/proc/sys")
VOLATILE = ("kernel/ns_last_pid", "kernel/random/", "kernel/pty/", "fs/binfmt_misc/", "kernel/printk_ratelimit")
"""Beginnings of the names of what changes by itself, or is more than a number: never put back."""
_RULES = ("iptables-save", "ip6tables-save")
_SECONDS = 10.0
"""For a cgroup to become empty after its processes were killed, and for a command that only looks."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One look at it."""

    boot: str
    """Which boot of the machine: after another one nothing needs to be put back."""
    sysctls: Mapping[str, str]
    """Every value that can be written, by its path below /proc/sys."""
    links: Sequence[str]
    """Network interfaces."""
    rules: Mapping[str, Sequence[str]]
    """Packet filter rules and policies, by the command that prints them."""

    @classmethod
    def look(cls) -> Machine:
        """As it is now."""
        boot = (SYSCTLS / "kernel/random/boot_id").read_text().strip()
        links = sorted(path.name for path in Path("/sys/class/net").iterdir())
        rules = {command: _rules(command) for command in _RULES if shutil.which(command)}
        return cls(boot, read_sysctls(SYSCTLS), links, rules)

    @classmethod
    def load(cls, path: Path) -> Machine:
        """As it was written by `save`."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def save(self, path: Path) -> None:
        """Writes it, whole or not at all."""
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self)), encoding="utf-8")
        partial.replace(path)

    def changed_sysctls(self, now: Machine) -> dict[str, str]:
        """name → value of before, of what has another value now."""
        return {name: value for name, value in self.sysctls.items() if now.sysctls.get(name, value) != value}

    def differences(self, now: Machine) -> list[str]:
        """What is not as it was, one line each; nothing about what went by itself."""
        lines = [f"sysctl {name}: was {value}" for name, value in self.changed_sysctls(now).items()]
        lines += [f"network interface {link} is new" for link in now.links if link not in self.links]
        for command, rules in now.rules.items():
            before = self.rules.get(command, ())
            lines += [f"{command}: {rule} is new" for rule in rules if rule not in before]
        return lines


def read_sysctls(root: Path) -> dict[str, str]:
    """Every value below the folder that can be read and written."""
    values = {}
    for folder, _, files in os.walk(root):
        for file in files:
            path = Path(folder, file)
            name = str(path.relative_to(root))
            if name.startswith(VOLATILE):
                continue
            # Some exist for a moment only, some can't be read, some are no text.
            with contextlib.suppress(OSError, UnicodeDecodeError):
                mode = path.stat().st_mode
                if mode & stat.S_IWUSR and mode & stat.S_IRUSR:
                    values[name] = path.read_text(encoding="utf-8").strip()
    return values


def restore_sysctls(values: Mapping[str, str], root: Path = SYSCTLS) -> list[str]:
    """Writes them; returns what could not be written, one line each."""
    failed = []
    for name, value in values.items():
        try:
            (root / name).write_text(f"{value}\n", encoding="utf-8")
        except OSError as error:
            failed.append(f"sysctl {name} can't be set to {value!r} again: {error.strerror}")
    return failed


def cgroups(name: str, mounts: str) -> Iterator[Path]:
    """Where a cgroup of this name is in each hierarchy; `mounts` is the text of /proc/mounts."""
    for line in mounts.splitlines():
        _, point, kind, *_ = line.split(" ")
        folder = Path(point) / name
        if kind in ("cgroup", "cgroup2") and folder.is_dir():
            yield folder


def remove_cgroups(name: str) -> list[str]:
    """Removes it from every hierarchy, children first; returns what could not be removed, one line each."""
    deadline = time.monotonic() + _SECONDS
    failed = []
    for root in cgroups(name, Path("/proc/mounts").read_text(encoding="utf-8")):
        for folder, _, _ in os.walk(root, topdown=False):
            while True:
                try:
                    Path(folder).rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError as error:  # busy for a moment after its last process was killed
                    if time.monotonic() > deadline:
                        failed.append(f"cgroup {folder} can't be removed: {error.strerror}")
                        break
                    time.sleep(0.05)
    return failed


def _rules(command: str) -> list[str]:
    text = subprocess.run([command], capture_output=True, text=True, timeout=_SECONDS, check=False).stdout
    return parse_rules(text)


def parse_rules(text: str) -> list[str]:
    """The rules and policies in what iptables-save prints, each with its table: `filter :FORWARD DROP`."""
    rules, table = [], ""
    for line in text.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith((":", "-A")):
            rules.append(f"{table} {line.partition(' [')[0]}")
    return rules
