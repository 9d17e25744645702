from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from raykueue.clusters.deaths import UNREADY_SECONDS, Deaths, Verdicts
from raykueue.clusters.deployments import Deployments
from raykueue.errors import ComponentDied
from tests.clusters.test_deployments import on_a_cluster, pod
from tests.kube.fake_api import FakeApi


def pods(ready: bool = True, restarts: int = 0, uid: str = "u", **last: Any) -> dict[str, Any]:
    one = pod(ready, restartCount=restarts, lastState={"terminated": last} if last else {})
    one["metadata"] |= {"name": "one", "uid": uid}
    return {"one": one}


def test_a_component_that_runs_is_not_told() -> None:
    verdicts = Verdicts()
    assert [verdicts.look(pods(), now, expected_down=False) for now in (0.0, 100.0)] == ["", ""]


def test_a_container_that_was_started_again_is_told_with_its_end() -> None:
    verdicts = Verdicts()
    assert verdicts.look(pods(restarts=2), 0.0, expected_down=False) == "", "before anybody looked"
    why = verdicts.look(pods(restarts=3, reason="OOMKilled", exitCode=137), 1.0, expected_down=False)
    assert why == "manager ended (OOMKilled, exit code 137) and was started again"


def test_one_that_is_not_ready_for_long_is_told_and_for_a_moment_is_not() -> None:
    verdicts = Verdicts()
    verdicts.look(pods(), 0.0, expected_down=False)
    assert verdicts.look(pods(ready=False), UNREADY_SECONDS, expected_down=False) == ""
    assert verdicts.look(pods(), UNREADY_SECONDS + 1, expected_down=False) == ""
    assert verdicts.look({}, 2 * UNREADY_SECONDS, expected_down=False) == ""
    why = verdicts.look({}, 2 * UNREADY_SECONDS + 2, expected_down=False)
    assert why == f"it was not ready for {UNREADY_SECONDS:g} s: it has no pod any more"


def test_what_somebody_keeps_down_is_not_told_nor_while_it_comes_back() -> None:
    verdicts = Verdicts()
    verdicts.look(pods(), 0.0, expected_down=False)
    assert verdicts.look({}, 1000.0, expected_down=True) == ""
    assert verdicts.look(pods(ready=False, uid="v"), 2000.0, expected_down=False) == ""
    assert verdicts.look(pods(uid="v"), 3000.0, expected_down=False) == ""
    assert verdicts.look(pods(ready=False, uid="v"), 4000.0, expected_down=False) != ""


def watching() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "pod-watch"]


def test_stopping_ends_the_watch(tmp_path: Path) -> None:
    async def test(api: FakeApi, deployments: Deployments) -> None:
        told: list[ComponentDied] = []
        deaths = Deaths(tmp_path / "kubeconfig", deployments, "dev")
        deaths.start(told.append)
        while not api.watching("Pod"):
            await asyncio.sleep(0.01)
        await asyncio.to_thread(deaths.stop)
        assert (watching(), told) == ([], [])

    on_a_cluster(tmp_path, test)


def test_who_watches_is_told_from_a_thread_that_then_ends_and_can_still_be_stopped(tmp_path: Path) -> None:
    async def test(api: FakeApi, deployments: Deployments) -> None:
        told: list[str] = []
        heard = threading.Event()

        def on_death(error: ComponentDied) -> None:
            told.append(str(error))
            heard.set()

        api.put("Pod", "one", "system", **pod(restartCount=0))
        deaths = Deaths(tmp_path / "kubeconfig", deployments, "dev")
        deaths.start(on_death)
        while not api.watching("Pod"):
            await asyncio.sleep(0.01)
        ended = pod(restartCount=1, lastState={"terminated": {"reason": "Error", "exitCode": 1}})
        api.put("Pod", "one", "system", **ended)
        assert await asyncio.to_thread(heard.wait, 10)
        assert told[0].startswith("kueue of cluster dev died: manager ended (Error, exit code 1)")
        for thread in watching():  # nothing is left to watch
            await asyncio.to_thread(thread.join, 10)
        assert not watching()
        await asyncio.to_thread(deaths.stop)
        await asyncio.to_thread(deaths.stop)

    on_a_cluster(tmp_path, test)


def test_a_watch_that_breaks_is_told(tmp_path: Path) -> None:
    async def test(api: FakeApi, deployments: Deployments) -> None:
        heard = threading.Event()
        told: list[str] = []

        def on_death(error: ComponentDied) -> None:
            told.append(str(error))
            heard.set()

        api.put("Pod", "one", "system", status={"containerStatuses": [{"nothing": "known"}]})
        deaths = Deaths(tmp_path / "kubeconfig", deployments, "dev")
        deaths.start(on_death)
        assert await asyncio.to_thread(heard.wait, 10)
        assert told == ["nobody watches kueue of cluster dev any more: KeyError('name')"]
        await asyncio.to_thread(deaths.stop)

    on_a_cluster(tmp_path, test)
