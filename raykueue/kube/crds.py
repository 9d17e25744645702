"""Creating custom resource definitions, and knowing when their kinds are served."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from raykueue.kube.client import Api, ApiError


def served_by(crds: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """{group-version: plurals} that these definitions will serve."""
    wanted: dict[str, set[str]] = {}
    for crd in crds:
        for version in crd["spec"]["versions"]:
            if version["served"]:
                group_version = f"{crd['spec']['group']}/{version['name']}"
                wanted.setdefault(group_version, set()).add(crd["spec"]["names"]["plural"])
    return wanted


def wait_served(api: Api, crds: Iterable[Mapping[str, Any]], until: Callable[[Callable[[], bool]], None]) -> None:
    """Returns when all of their kinds are served. `until(reached)` waits, and gives up with an error of its own."""
    # By discovery: a LIST of these definitions is 5 MB each time.
    for group_version, plurals in served_by(crds).items():
        until(partial(_serves, api, group_version, plurals))


def _serves(api: Api, group_version: str, plurals: set[str]) -> bool:
    return plurals <= _served(api, group_version)


def _served(api: Api, group_version: str) -> set[str]:
    try:
        return {resource["name"] for resource in api.get(f"/apis/{group_version}")["resources"]}
    except ApiError:
        return set()
