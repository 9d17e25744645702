"""The recorder's life: start, ready, stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from raykueue.errors import EXIT_INFRA, ClusterError, InfraError, RecorderError, UsageError
from raykueue.kube.access import Access, load_access
from raykueue.kube.discovery import served_versions
from raykueue.kube.session import NO_ANSWER, ApiSession
from raykueue.kube.watch import KindStream
from raykueue.model.events import Header
from raykueue.model.kinds import KINDS
from raykueue.run.recorder import collector
from raykueue.run.recorder.auditor import Auditor
from raykueue.run.recorder.barriers import Barriers
from raykueue.run.recorder.config import JOURNAL, SOCKET, RecorderConfig
from raykueue.run.recorder.intake import Intake
from raykueue.run.recorder.journal_file import JournalFile
from raykueue.run.recorder.sentinels import Sentinels
from raykueue.run.recorder.service import Service
from raykueue.run.recorder.stats import stats
from raykueue.run.wire import Server

FAREWELL_S = 3.0
"""For the last barrier, and again for the deletion of the sentinels."""
BACKLOG = 300
"""Events that may wait to be folded; folding many at once would delay the arrival times of others."""
BACKLOG_LOOK_S = 1.0


async def record(
    folder: Path,
    config: RecorderConfig,
    auditor: Auditor,
    ready: Callable[[], None],
    stop: asyncio.Event,
    access: Access | None = None,
) -> None:
    """Records until `stop` is set; calls `ready` when every kind is listed and the first barrier has passed.

    Raises:
        InfraError: it could not start.
    """
    intake = Intake.to(JournalFile(folder / JOURNAL), auditor)
    try:
        async with ApiSession(access or load_access(Path(config.kubeconfig), config.context)) as api:
            try:
                await _record(folder, config, api, intake, ready, stop)
            except NO_ANSWER as failure:
                raise ClusterError(f"the API server of {config.kubeconfig} does not answer: {failure!r}") from failure
    finally:
        intake.journal.close()


async def _record(
    folder: Path,
    config: RecorderConfig,
    api: ApiSession,
    intake: Intake,
    ready: Callable[[], None],
    stop: asyncio.Event,
) -> None:
    versions = await served_versions(api, KINDS)
    sentinels = Sentinels(api, config.namespace, versions)
    streams: dict[str, KindStream] = {}
    barriers = Barriers(sentinels, streams, intake.passed, config.barrier_timeout_s)
    for kind in KINDS:
        if kind.name in versions:
            streams[kind.name] = KindStream(
                api, kind, versions[kind.name], intake.take, barriers.advanced, intake.trouble
            )
    server: Server | None = None
    tasks: list[asyncio.Task[None]] = []
    try:
        await sentinels.create()
        intake.proven = frozenset(sentinels.kinds)
        intake.write(_header(config, versions, sentinels))
        await asyncio.gather(*(stream.start() for stream in streams.values()))
        tasks = [asyncio.create_task(stream.watch(), name=kind) for kind, stream in streams.items()]
        await barriers.barrier()
        service = Service(intake, barriers, lambda: stats(intake, barriers, streams))
        server = Server(folder / SOCKET, service.handle, service.gone)
        await server.start()
        tasks.append(asyncio.create_task(_fold_backlog(intake, barriers)))
        ready()
        await _until(stop, tasks)
        with contextlib.suppress(RecorderError, TimeoutError):
            await asyncio.wait_for(barriers.barrier(), FAREWELL_S)
    finally:
        if server is not None:
            await server.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(sentinels.delete(), FAREWELL_S)


async def _until(stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    """Waits for `stop`. A task that returns has said why; one that raises is a defect, and ends the recorder."""
    stopped = asyncio.create_task(stop.wait())
    pending: set[asyncio.Task[Any]] = {stopped, *tasks}
    try:
        while not stopped.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        stopped.cancel()


async def _fold_backlog(intake: Intake, barriers: Barriers) -> None:
    while True:
        await asyncio.sleep(BACKLOG_LOOK_S)
        if intake.unfolded > BACKLOG:
            with contextlib.suppress(RecorderError):  # whoever judges gets the same error, and has to act on it
                await barriers.barrier()


def _header(config: RecorderConfig, versions: Mapping[str, str], sentinels: Sentinels) -> Header:
    missing = [kind.name for kind in KINDS if kind.name not in versions]
    kinds: dict[str, Any] = {**versions, "missing": missing}
    by_list = {kind: sentinels.refused.get(kind, "") for kind in versions if kind not in sentinels.kinds}
    settings = {**config.settings, "kinds": kinds, "proven_by_list": by_list}
    return Header(arrived=time.time_ns(), pair=config.pair, settings=settings)


def run(folder: Path, make_auditor: Callable[[RecorderConfig], Auditor]) -> int:
    """The process: records until its input ends or SIGTERM comes. Returns the exit code."""
    # ctrl-C goes to the whole group of the terminal; the owner decides what becomes of the run.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collector.seldom()
    try:
        config = RecorderConfig.load(folder)
        asyncio.run(_main(folder, config, make_auditor(config)))
    except (InfraError, UsageError) as error:
        sys.stderr.write(f"recorder: {' '.join(str(error).split())}\n")
        return EXIT_INFRA
    return 0


async def _main(folder: Path, config: RecorderConfig, auditor: Auditor) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    is_ready = False

    def ready() -> None:
        nonlocal is_ready
        is_ready = True
        sys.stdout.write("ready\n")
        sys.stdout.flush()

    recording = asyncio.create_task(record(folder, config, auditor, ready, stop))

    def end() -> None:
        stop.set()
        if not is_ready:
            recording.cancel()

    def end_with_input() -> None:
        while os.read(0, 4096):
            pass
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(end)

    loop.add_signal_handler(signal.SIGTERM, end)
    threading.Thread(target=end_with_input, name="waits for end of input", daemon=True).start()
    try:
        await recording
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
