"""A simulated Ray with its real doors open: an API server, the dashboard as KubeRay calls it, the control socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from raykueue.kube.access import Access
from raykueue.ray.control import SimulatedRay
from raykueue.ray.simulated.process import Process
from tests.ray.fake_api import FakeApi

DEADLINE_S = 10.0


class Harness:
    """What a test holds in its hands."""

    def __init__(self, api: FakeApi, process: Process, client: aiohttp.ClientSession, port: int, socket_: Path) -> None:
        self.api = api
        self.process = process
        self.socket = socket_
        self._client = client
        self._proxy = f"http://127.0.0.1:{port}"
        self._control = SimulatedRay(socket_, deadline_s=DEADLINE_S)

    async def call(
        self, method: str, cluster: str, path: str, body: Any = None, namespace: str = "ns"
    ) -> tuple[int, Any]:
        """One dashboard call as KubeRay makes it: status, and JSON or text."""
        url = f"http://{cluster}-head-svc.{namespace}.svc.cluster.local:8265{path}"
        async with self._client.request(method, url, json=body, proxy=self._proxy) as answer:
            is_json = answer.content_type == "application/json"
            return answer.status, (await answer.json() if is_json else await answer.text())

    async def status(self, cluster: str, job_id: str) -> str | int:
        """The status that a GET answers, or its HTTP code."""
        code, answer = await self.call("GET", cluster, f"/api/jobs/{job_id}")
        return str(answer["status"]) if code == 200 else code

    async def control(self, do: str, *arguments: Any, **options: Any) -> Any:
        """One call of the control client, on a thread as it is a blocking one."""
        return await asyncio.to_thread(getattr(self._control, do), *arguments, **options)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Lets the loop go round until `reached`."""
        async with asyncio.timeout(DEADLINE_S):
            while not reached():
                await asyncio.sleep(0.002)

    async def seen(self) -> None:
        """Everything put into the API server so far has been taken in."""
        self._marks = getattr(self, "_marks", 0) + 1
        name = f"mark-{self._marks}"
        for kind in ({"submissionMode": "HTTPMode"}, {"containers": [{"name": "c"}]}):
            labels = {"ray.io/node-type": "head", "ray.io/cluster": name}
            metadata = {"namespace": "marks", "name": name, "uid": name, "labels": labels}
            self.api.put({"metadata": metadata, "spec": kind, "status": {"phase": "Running"}})
        simulation = self.process.simulation
        key = ("marks", name)
        await self.until(lambda: key in simulation.records and key in simulation.heads)


@asynccontextmanager
async def simulated_ray(folder: Path, api: FakeApi | None = None) -> AsyncIterator[Harness]:
    """Runs one, and ends it."""
    api = api or FakeApi()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    control = folder / "ray.sock"
    async with api.serving() as server, aiohttp.ClientSession() as client:
        process = Process(Access(server=server, ca_file=""), port, control)
        ready, stop = asyncio.Event(), asyncio.Event()
        running = asyncio.create_task(process.run(ready.set, stop))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        try:
            yield Harness(api, process, client, port, control)
        finally:
            stop.set()
            await running


def scenario(folder: Path, body: Callable[[Harness], Awaitable[None]], *objects: dict[str, Any]) -> None:
    """Runs `body` against a fresh simulated Ray whose API server holds `objects`."""

    async def run() -> None:
        api = FakeApi()
        api.put(*objects)
        async with simulated_ray(folder, api) as ray:
            await body(ray)

    asyncio.run(run())
