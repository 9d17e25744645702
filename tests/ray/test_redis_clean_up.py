"""The pod that cleans Redis after a RayCluster, as the simulated Ray ends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from raykueue.ray.simulated import process as process_module
from tests.ray.fake_api import redis_clean_up
from tests.ray.harness import Harness, scenario


def test_a_pod_that_cleans_redis_is_ended_once_however_often_it_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "CLEANING_S", 0.05)

    async def body(ray: Harness) -> None:
        await ray.seen()
        ray.api.put(redis_clean_up("c"), redis_clean_up("c"))
        await ray.until(lambda: len(ray.api.patches) > 0)
        await ray.seen()
        assert ray.api.gets == ["c-redis-cleanup"]
        assert [(name, status["phase"]) for name, status in ray.api.patches] == [("c-redis-cleanup", "Succeeded")]

    scenario(tmp_path, body)


def test_a_pod_that_cleans_redis_and_can_not_be_ended_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(process_module, "CLEANING_S", 0.0)
    told: list[str] = []

    async def body(ray: Harness) -> None:
        ray.api.refuse_patches, ray.api.refuse_with = 1, 403
        ray.api.put(redis_clean_up("c"))

        def said() -> bool:
            told.append(capsys.readouterr().err)
            return "Redis clean-up pod ns/c-redis-cleanup could not be ended" in "".join(told)

        await ray.until(said)

    scenario(tmp_path, body)
