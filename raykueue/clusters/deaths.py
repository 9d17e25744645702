"""Hears of components that end by themselves: their pods are watched for as long as the cluster is used."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from raykueue.clusters.deployments import Deployments, described, is_ready
from raykueue.errors import ComponentDied
from raykueue.kube.access import load_access
from raykueue.kube.waiting import Objects, changes

UNREADY_SECONDS = 20.0
"""A component that is not ready for so long does not work any more: its probes fail on a full machine for less."""


class Verdicts:
    """What the pods of one component tell, one look after the other. Pure but for the clock that is handed in."""

    def __init__(self) -> None:
        self._containers: dict[str, int] = {}
        """{uid/container: times it was started again} as first seen."""
        self._ready_last: float | None = None
        self._seen_ready = False

    def look(self, pods: Objects, now: float, *, expected_down: bool) -> str:
        """Why it has ended by itself; empty as long as it runs, or while somebody keeps it down."""
        ended = self._restarts(pods)
        if expected_down:
            self._seen_ready, self._ready_last = False, None
            return ""
        if ended:
            return ended
        if any(is_ready(pod) for pod in pods.values()):
            self._seen_ready, self._ready_last = True, now
            return ""
        if self._seen_ready and self._ready_last is not None and now - self._ready_last > UNREADY_SECONDS:
            told = "; ".join(described(pod) for pod in pods.values()) or "it has no pod any more"
            return f"it was not ready for {UNREADY_SECONDS:g} s: {told}"
        return ""

    def _restarts(self, pods: Objects) -> str:
        why = ""
        for pod in pods.values():
            for container in pod.get("status", {}).get("containerStatuses", []):
                key, count = f"{pod['metadata']['uid']}/{container['name']}", int(container.get("restartCount", 0))
                if count > self._containers.setdefault(key, count):
                    why = f"{container['name']} ended{_how(container)} and was started again"
                self._containers[key] = count
        return why


class Deaths:
    """A thread that watches."""

    def __init__(self, kubeconfig: Path, deployments: Deployments, cluster: str) -> None:
        self._kubeconfig = kubeconfig
        self._deployments = deployments
        self._cluster = cluster
        self._loop = asyncio.new_event_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._thread: threading.Thread | None = None

    def start(self, on_death: Callable[[ComponentDied], None]) -> None:
        """Begins; `on_death` is called from the thread, once for each end."""
        self._thread = threading.Thread(target=self._run, args=[on_death], name="pod-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the watching; nobody is told anything any more. Does nothing the second time."""
        thread, self._thread = self._thread, None
        if thread is None:
            return

        def cancel() -> None:
            for task in self._tasks:
                task.cancel()

        with contextlib.suppress(RuntimeError):  # the loop is closed: all there is has died, and was told
            self._loop.call_soon_threadsafe(cancel)
        if thread is not threading.current_thread():
            thread.join(10)

    def _run(self, on_death: Callable[[ComponentDied], None]) -> None:
        async def all_of_them() -> None:
            self._tasks = [asyncio.ensure_future(self._guard(name, on_death)) for name in self._deployments.specs]
            if self._thread is not None:  # not stopped meanwhile
                await asyncio.gather(*self._tasks, return_exceptions=True)

        try:
            self._loop.run_until_complete(all_of_them())
        finally:
            self._loop.close()

    async def _guard(self, name: str, on_death: Callable[[ComponentDied], None]) -> None:
        try:
            await self._watch(name, on_death)
        except Exception as error:  # noqa: BLE001 - whatever it is: a component that nobody watches may have died
            on_death(ComponentDied(f"nobody watches {name} of cluster {self._cluster} any more: {error!r}"))

    async def _watch(self, name: str, on_death: Callable[[ComponentDied], None]) -> None:
        verdicts = Verdicts()
        pods: Objects = {}
        access = load_access(self._kubeconfig)
        stream = changes(access, self._deployments.pods_of(name), self._deployments.selector_of(name))
        step = asyncio.ensure_future(anext(stream))
        try:
            while True:
                done, _ = await asyncio.wait({step}, timeout=1.0)  # how long it was not ready is no event
                if done:
                    pods = step.result()
                    step = asyncio.ensure_future(anext(stream))
                down = name in self._deployments.expected_down
                if why := verdicts.look(pods, time.monotonic(), expected_down=down):
                    log = await asyncio.to_thread(self._deployments.logs, name)
                    on_death(
                        ComponentDied(f"{name} of cluster {self._cluster} died: {why}; the end of its log:\n{log}")
                    )
                    return
        finally:
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
            await stream.aclose()  # type: ignore[attr-defined]  # a generator


def _how(container: Mapping[str, Any]) -> str:
    last = container.get("lastState", {}).get("terminated", {})
    return f" ({last.get('reason', 'no reason')}, exit code {last['exitCode']})" if "exitCode" in last else ""
