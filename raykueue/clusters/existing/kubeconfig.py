"""One context of the user's kubeconfig, copied into a file of our own: nothing is ever written back.

Looked up as kubectl does: the files that KUBECONFIG lists, or ~/.kube/config, where the first to name something wins.
What the context needs is kept as it is: certificates, `insecure-skip-tls-verify`, proxies, credential plugins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from raykueue.clusters.pki import write_secret
from raykueue.errors import UsageError

PROTECTED = ("live", "prd", "prod", "production")
"""No suite that submits, preempts and deletes runs where people's work does."""
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_WORD = re.compile(r"[A-Za-z]+")


def user_kubeconfigs(environment: Mapping[str, str]) -> list[Path]:
    """The files that kubectl would read."""
    listed = [Path(one) for one in environment.get("KUBECONFIG", "").split(os.pathsep) if one]
    return listed or [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]


def minimal(files: Sequence[Path], context: str) -> dict[str, Any]:
    """A kubeconfig with this context and what it needs, and nothing else.

    Raises:
        UsageError: there is no such context, or what it needs is not there, or its name says that it is protected.
    """
    documents = [(file, _read(file)) for file in files if file.exists()]
    if not documents:
        raise UsageError(f"--context {context}: there is no kubeconfig; looked for {', '.join(map(str, files))}")
    _, chosen = _entry(documents, "contexts", context, context)
    about = chosen["context"]
    refuse_protected(context, str(about.get("cluster", "")))
    cluster_file, cluster = _entry(documents, "clusters", str(about.get("cluster", "")), context)
    user_file, user = _entry(documents, "users", str(about.get("user", "")), context)
    refuse_protected(context, str(cluster["cluster"].get("server", "")))
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{**cluster, "cluster": _absolute(cluster["cluster"], cluster_file.parent)}],
        "users": [{**user, "user": _absolute(user["user"], user_file.parent)}],
        "contexts": [chosen],
        "current-context": context,
    }


def write(document: Mapping[str, Any], path: Path) -> None:
    """Writes it, readable by its owner only."""
    write_secret(path, yaml.safe_dump(dict(document)))


def refuse_protected(context: str, *names: str) -> None:
    """Returns if nothing about the context says that it is protected.

    Raises:
        UsageError: a word of its name, of its cluster's or of its server's does.
    """
    for name in (context, *names):
        found = next((word for word in _WORD.findall(name) if word.lower() in PROTECTED), "")
        if found:
            raise UsageError(
                f"--context {context}: {name!r} says {found!r}, and this suite submits, preempts and deletes jobs; "
                f"it runs on no cluster whose name has one of {', '.join(PROTECTED)}"
            )


def _entry(
    documents: Sequence[tuple[Path, Mapping[str, Any]]], kind: str, name: str, context: str
) -> tuple[Path, dict[str, Any]]:
    known = []
    for file, document in documents:
        for entry in document.get(kind) or []:
            if entry.get("name") == name:
                return file, dict(entry)
            known.append(str(entry.get("name")))
    there = ", ".join(sorted(known)) or "none"
    raise UsageError(f"--context {context}: no {kind.removesuffix('s')} {name!r} in the kubeconfig; there are: {there}")


def _absolute(part: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Relative paths are meant from the kubeconfig's own folder, and the copy lies elsewhere."""
    changed = dict(part)
    for key in _FILES:
        if changed.get(key):
            changed[key] = str(folder.absolute() / changed[key])
    plugin = changed.get("exec")
    if plugin and os.sep in plugin["command"]:
        changed["exec"] = {**plugin, "command": str(folder.absolute() / plugin["command"])}
    return changed


def _read(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise UsageError(f"kubeconfig {file} can't be read: {error}") from error
    return document if isinstance(document, dict) else {}
