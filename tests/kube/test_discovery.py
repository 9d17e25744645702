from __future__ import annotations

import asyncio

from raykueue.kube.discovery import served_versions
from raykueue.kube.session import ApiSession
from raykueue.model.kinds import BY_NAME, KINDS, Kind
from tests.kube.fake_api import FakeApi


def versions(api: FakeApi) -> dict[str, str]:
    async def ask() -> dict[str, str]:
        async with api, ApiSession(api.access) as session:
            return await served_versions(session, KINDS)

    return asyncio.run(ask())


def test_the_newest_served_version_of_each_kind_is_taken() -> None:
    assert versions(FakeApi()) == {kind.name: kind.versions[0] for kind in KINDS}


def test_a_kind_that_is_not_served_is_left_out() -> None:
    found = versions(FakeApi(without=["Cohort", "RayJob"]))
    assert set(BY_NAME) - set(found) == {"Cohort", "RayJob"}


def test_an_older_version_is_taken_where_the_newest_does_not_serve_the_kind() -> None:
    class HasAnOlderCohort(FakeApi):
        def _of(self, version: str) -> list[Kind]:
            return [one for one in super()._of(version) if (version, one.name) != ("kueue.x-k8s.io/v1beta2", "Cohort")]

    found = versions(HasAnOlderCohort())
    assert found["Cohort"] == "kueue.x-k8s.io/v1beta1"
    assert found["Workload"] == "kueue.x-k8s.io/v1beta2"
