"""The running simulated Ray: watches in, dashboard and control socket served, submitters ended."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from raykueue.errors import InfraError
from raykueue.kube.access import Access
from raykueue.kube.session import NO_ANSWER, ApiRefused, ApiSession
from raykueue.kube.watch import KindStream
from raykueue.model.events import Event, Gap, Listed
from raykueue.model.kinds import BY_NAME
from raykueue.ray.simulated.control_server import ControlServer
from raykueue.ray.simulated.dashboard import Dashboard
from raykueue.ray.simulated.instructions import Instructions
from raykueue.ray.simulated.jobs import Ending, Job
from raykueue.ray.simulated.objects import (
    Submitter,
    is_head,
    is_over,
    is_redis_clean_up,
    read_head,
    read_rayjob,
    read_submitter,
    submitter_job,
)
from raykueue.ray.simulated.simulation import EndSubmitter, Simulation
from raykueue.ray.simulated.submitters import end_submitter

START_S = 60.0
"""How long the API server is waited for."""
READ_S = 20.0
"""How long a terminal state may stay unread: KubeRay asks every 3 s (rayjob_controller.go RayJobDefaultRequeueDuration
@v1.6.2)."""

CLEANING_S = 1.0
"""How long a Redis clean-up pod runs."""


class Process:
    """One simulated Ray on one event loop."""

    def __init__(self, access: Access, port: int, control: Path) -> None:
        self.simulation = Simulation(now=lambda: time.time_ns() // 1_000_000)
        self.instructions = Instructions(self.simulation)
        self.dashboard = Dashboard(self.simulation, self._end_later, self._was_read)
        self._access = access
        self._port = port
        self._control = ControlServer(control, self._actions())
        self._tasks: set[asyncio.Task[None]] = set()
        self._reads: dict[Job, asyncio.Event] = {}
        self._cleaning: set[str] = set()
        """UIDs of pods that clean Redis."""

    async def run(self, ready: Callable[[], None], stop: asyncio.Event) -> None:
        """Until `stop`; calls `ready` once everything is served and both watches are established.

        Raises:
            InfraError: the API server does not answer or refuses, or a watch has ended for good.
        """
        runner = web.AppRunner(self.dashboard.application(), access_log=None)
        async with ApiSession(self._access) as api:
            self._api = api
            await runner.setup()
            try:
                await web.TCPSite(runner, "127.0.0.1", self._port).start()
                streams = [
                    KindStream(api, kind, kind.versions[0], self._take, _heedless, _log)
                    for kind in (BY_NAME["RayJob"], BY_NAME["Pod"])
                ]
                for stream in streams:
                    await _listed(stream)
                await self._control.start()
                await self._serve(streams, ready, stop)
            finally:
                await self._control.stop()
                for task in list(self._tasks):
                    task.cancel()
                await asyncio.gather(*self._tasks, return_exceptions=True)
                await runner.cleanup()

    async def _serve(self, streams: list[KindStream], ready: Callable[[], None], stop: asyncio.Event) -> None:
        watches = [asyncio.create_task(stream.watch()) for stream in streams]
        stopped = asyncio.create_task(stop.wait())
        ready()
        done, pending = await asyncio.wait([*watches, stopped], return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        if stopped not in done:
            for task in done:
                task.result()
            raise InfraError("; ".join(stream.ended for stream in streams if stream.ended))

    # --- watch events ---

    def _take(self, record: Event | Listed | Gap) -> None:
        if not isinstance(record, Event):
            return
        deleted = record.type == "DELETED"
        meta = record.object["metadata"]
        if record.kind == "RayJob":
            if deleted:
                self.simulation.rayjob_gone(meta["namespace"], meta["name"])
            else:
                self._end_later(self.simulation.rayjob_seen(read_rayjob(record.object)))
        elif is_head(record.object):
            self._take_head(record.object, deleted)
        elif is_redis_clean_up(record.object):
            self._take_redis_clean_up(record.object, deleted)
        elif job_name := submitter_job(record.object):
            submitter = None if deleted else read_submitter(record.object)
            if submitter is None:
                self.simulation.submitter_gone(meta["namespace"], job_name, meta["uid"])
            else:
                self._end_later(self.simulation.submitter_seen(job_name, submitter))

    def _take_head(self, pod: Mapping[str, Any], deleted: bool) -> None:
        meta = pod["metadata"]
        head = read_head(pod)
        if deleted or is_over(pod):
            cluster = (meta.get("labels") or {}).get("ray.io/cluster", "")
            self._end_later(self.simulation.head_gone(meta["namespace"], cluster, meta["uid"]))
        elif head is not None:
            self._end_later(self.simulation.head_seen(head))

    def _take_redis_clean_up(self, pod: Mapping[str, Any], deleted: bool) -> None:
        cleaning = None if deleted else read_submitter(pod)
        if cleaning is None:
            self._cleaning.discard(pod["metadata"]["uid"])
        elif cleaning.uid not in self._cleaning:
            self._cleaning.add(cleaning.uid)
            self._later(self._clean_redis(cleaning))

    # --- submitters ---

    def _end_later(self, ends: list[EndSubmitter]) -> None:
        for end in ends:
            self._later(self._end_or_log(end))

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _clean_redis(self, pod: Submitter) -> None:
        """There is no Redis; it takes as long as a small one."""
        await asyncio.sleep(CLEANING_S)
        try:
            await end_submitter(self._api, pod, 0)
        except (InfraError, *NO_ANSWER) as error:
            _log(f"Redis clean-up pod {pod.namespace}/{pod.pod} could not be ended: {error!r}")

    async def _end_or_log(self, end: EndSubmitter) -> None:
        try:
            await self._end(end)
        except (InfraError, *NO_ANSWER) as error:
            _log(f"submitter {end.submitter.namespace}/{end.submitter.pod} could not be ended: {error!r}")

    async def _end(self, end: EndSubmitter) -> None:
        done = False
        try:
            if end.after_read and end.job is not None and end.job.read is None:
                await self._wait_for_read(end.job)
            done = await end_submitter(self._api, end.submitter, end.exit_code)
        finally:
            self.simulation.submitter_ended(end, done)

    async def _wait_for_read(self, job: Job) -> None:
        event = self._reads.setdefault(job, asyncio.Event())
        try:
            await asyncio.wait_for(event.wait(), READ_S)
        except TimeoutError as error:
            raise InfraError(
                f"nobody has read that Ray job {job.submission_id} is {job.status} in {READ_S:g} s"
            ) from error
        finally:
            self._reads.pop(job, None)

    async def _end_all(self, ends: list[EndSubmitter]) -> None:
        await asyncio.gather(*(self._end(end) for end in ends))

    def _was_read(self, job: Job) -> None:
        self.simulation.was_read(job)
        if job.read is not None and (event := self._reads.get(job)) is not None:
            event.set()

    # --- instructions ---

    def _actions(self) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
        return {
            "finish": self._finish,
            "stop": self._stop,
            "hold": self._hold,
            "release": self._release,
            "fail_submission": self._fail_submission,
            "submit": self._submit,
            "state": self._state,
            "times": self._times,
            "calls": self._calls,
        }

    async def _finish(self, request: Mapping[str, Any], stopped: bool = False) -> dict[str, Any]:
        ending = Ending(
            exit_code=int(request.get("exit_code", 0)),
            message=str(request.get("message", "")),
            stopped=stopped,
            submitter_exit_code=request.get("submitter_exit_code"),
            after_read=bool(request.get("after_read", False)),
        )
        namespace, name = _named(request)
        when_running = request.get("when") == "running"
        await self._end_all(self.instructions.finish(namespace, name, ending, when_running))
        return {} if when_running else self.instructions.state(namespace, name)

    async def _stop(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return await self._finish(request, stopped=True)

    async def _hold(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.instructions.hold(*_named(request))
        return {}

    async def _release(self, request: Mapping[str, Any]) -> dict[str, Any]:
        await self._end_all(self.instructions.release(*_named(request)))
        return {}

    async def _fail_submission(self, request: Mapping[str, Any]) -> dict[str, Any]:
        exit_code, attempts = int(request.get("exit_code", 1)), request.get("attempts")
        await self._end_all(self.instructions.fail_submission(*_named(request), exit_code, attempts))
        return {}

    async def _submit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        await self._end_all(self.instructions.submit(*_named(request), str(request["submission_id"])))
        return self.instructions.state(*_named(request))

    async def _state(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self.instructions.state(*_named(request))

    async def _times(self, _: Mapping[str, Any]) -> list[dict[str, Any]]:
        return self.instructions.times()

    async def _calls(self, _: Mapping[str, Any]) -> dict[str, Any]:
        answered: dict[str, dict[str, int]] = {}
        for (method, path, status), times in sorted(self.dashboard.calls.items()):
            answered.setdefault(f"{method} {path}", {})[str(status)] = times
        return {"answered": answered, "unexpected": dict(self.dashboard.unexpected)}


async def _listed(stream: KindStream) -> None:
    """The first LIST; the API server may still be starting."""
    try:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type((ApiRefused, *NO_ANSWER)),
            stop=stop_after_delay(START_S),
            wait=wait_fixed(0.2),
            reraise=True,
        ):
            with attempt:
                await stream.start()
    except NO_ANSWER as error:
        raise InfraError(f"{stream.kind.name}s can't be listed for {START_S:.0f} s: {error!r}") from error


def _heedless(kind: str, rev: int) -> None:
    """How far a stream is complete matters to a recorder, not to a Ray."""


def _named(request: Mapping[str, Any]) -> tuple[str, str]:
    return str(request["namespace"]), str(request["name"])


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - a process's log
