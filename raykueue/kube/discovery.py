"""Which of the watched kinds an API server serves, and at which version."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from raykueue.kube.session import ApiRefused, ApiSession
from raykueue.model.kinds import Kind


async def served_versions(api: ApiSession, kinds: Iterable[Kind]) -> dict[str, str]:
    """{kind: newest group-version served}, in the order of `kinds`; a kind that isn't served is left out.

    Raises:
        ApiRefused: discovery itself was refused.
    """
    kinds = list(kinds)
    groups = (await api.get("/apis")).get("groups") or []
    served = {"v1"} | {version["groupVersion"] for group in groups for version in group.get("versions") or []}
    wanted = sorted({version for kind in kinds for version in kind.versions} & served)
    plurals = dict(zip(wanted, await asyncio.gather(*(_plurals(api, version) for version in wanted)), strict=True))
    chosen: dict[str, str] = {}
    for kind in kinds:
        version = next((version for version in kind.versions if kind.plural in plurals.get(version, ())), None)
        if version is not None:
            chosen[kind.name] = version
    return chosen


async def _plurals(api: ApiSession, version: str) -> set[str]:
    try:
        listed = await api.get(f"/apis/{version}" if "/" in version else f"/api/{version}")
    except ApiRefused as refused:
        if refused.status == 404:  # withdrawn between the two requests
            return set()
        raise
    return {resource["name"] for resource in listed.get("resources") or []}
