"""A recorder in a thread of this process, against a fake API server and with a ledger that a test writes."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from raykueue.audit.answers import Circumstances
from raykueue.audit.handovers import Donor, HandOver
from raykueue.model.events import Barrier, Event, Moment, Record
from raykueue.model.findings import Finding, Ref
from raykueue.run.recorder.auditor import Auditor
from raykueue.run.recorder.config import SOCKET, RecorderConfig
from raykueue.run.recorder.process import record
from raykueue.run.recorder.scopes import ScopeNames
from tests.kube.fake_api import FakeApi

T = TypeVar("T")
NAMESPACE = "raykueue-sentinel-test"
PAIR = {"kueue": "0.19.2"}


@dataclass(frozen=True)
class FakeObligation:
    rule: str
    text: str
    until: int | None


class FakeAuditor:
    """Every live pod named `bad…` is a finding; obligations are what `owes` says of the folded events."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.folded: list[Event] = []
        self.barriers: list[Barrier] = []
        self.forgotten: list[str] = []
        self.owes: Callable[[FakeAuditor], Sequence[FakeObligation]] = lambda _: ()
        self.told: list[str] = []
        self.explode_at = ""

    def add(self, record: Record) -> None:
        if isinstance(record, Event) and record.object["metadata"]["name"] == self.explode_at:
            raise KeyError(self.explode_at)
        self.records.append(record)

    def fold(self, barrier: Barrier) -> None:
        self.barriers.append(barrier)
        events = [one for one in self.records if isinstance(one, Event) and one not in self.folded]
        self.folded += sorted((one for one in events if one.rev <= barrier.rev), key=lambda one: one.rev)

    def _all_findings(self) -> Iterator[Finding]:
        for event in self.folded:
            metadata = event.object["metadata"]
            if event.kind == "Pod" and metadata["name"].startswith("bad"):
                yield finding(metadata["namespace"], metadata["name"], event.rev)

    def findings(self, scope: ScopeNames) -> list[Finding]:
        return [one for one in self._all_findings() if one.namespace in scope.namespaces]

    def unscoped(self, scopes: Iterable[ScopeNames]) -> list[Finding]:
        known = {namespace for scope in scopes for namespace in scope.namespaces}
        return [one for one in self._all_findings() if one.namespace not in known]

    def problems(self, _scope: ScopeNames) -> list[str]:
        return self.told

    def circumstances(self, findings: Iterable[Finding]) -> dict[str, Circumstances]:
        return {one.id: Circumstances() for one in findings}

    def handovers(self, scope: ScopeNames) -> list[HandOver]:
        return [handover(one.namespace, one.objects[0].name) for one in self.findings(scope)]

    def obligations(self, _scope: ScopeNames) -> Sequence[FakeObligation]:
        return self.owes(self)

    def forget(self, scope: ScopeNames) -> None:
        self.forgotten.append(scope.name)


def finding(namespace: str, pod: str, rev: int) -> Finding:
    return Finding(
        id=pod,
        rule="no-survivors",
        klass="hazard",
        cause="test",
        text=f"{pod} is live",
        objects=(Ref("Pod", namespace, pod, pod),),
        begin=Moment(rev, 5),
        end=None,
        namespace=namespace,
        peak={"cpu": 500},
        resource_seconds={"cpu": 1.5},
        seconds=(1.0, 2.0),
    )


def handover(namespace: str, pod: str) -> HandOver:
    job, workload = Ref("RayJob", namespace, pod, "j"), Ref("Workload", namespace, pod, "w")
    donor = Donor(job, workload, "w#1", Moment(1, 1), gone=None)
    return HandOver("cq", job, workload, "w#2", (donor,), {"cpu": 1}, Moment(2, 2), Moment(3, 3), {}, {}, 0.0, 0.0, 0.0)


class Harness:
    """The running recorder, as a test sees it."""

    def __init__(self, folder: Path, api: FakeApi) -> None:
        self.folder = folder
        self.socket = folder / SOCKET
        self.api = api
        self.auditor = FakeAuditor()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.stop: asyncio.Event | None = None

    def do(self, change: Callable[[FakeApi], T]) -> T:
        """Changes the fake cluster, in its own thread."""
        assert self.loop is not None
        result: Future[T] = Future()

        def run() -> None:
            try:
                result.set_result(change(self.api))
            except Exception as error:  # noqa: BLE001 - it is the test's
                result.set_exception(error)

        self.loop.call_soon_threadsafe(run)
        return result.result(5)


@contextmanager
def recorder(
    folder: Path,
    api: FakeApi | None = None,
    auditor: Auditor | None = None,
    pair: Mapping[str, str] = PAIR,
    **settings: object,
) -> Iterator[Harness]:
    """Runs one; it is stopped, and its journal closed, at the end. With `auditor`, instead of the fake one."""
    harness = Harness(folder, api or FakeApi())
    ready = threading.Event()
    failure: list[BaseException] = []

    async def main() -> None:
        harness.loop = asyncio.get_running_loop()
        harness.stop = asyncio.Event()
        config = RecorderConfig("nowhere", NAMESPACE, pair=pair, settings=settings)
        async with harness.api:
            await record(folder, config, auditor or harness.auditor, ready.set, harness.stop, harness.api.access)

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 - it is the test's
            failure.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(20)
    if failure:
        thread.join()
        raise failure[0]
    try:
        yield harness
    finally:
        assert harness.loop is not None
        assert harness.stop is not None
        with contextlib.suppress(RuntimeError):  # it has ended already
            harness.loop.call_soon_threadsafe(harness.stop.set)
        thread.join(20)
    if failure:
        raise failure[0]


def soon() -> float:
    return time.monotonic() + 10


def eventually(condition: Callable[[], object]) -> None:
    """For states of the recorder's thread that no event tells."""
    deadline = soon()
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        threading.Event().wait(0.002)
