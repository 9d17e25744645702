from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from raykueue.errors import RecorderError
from raykueue.model.events import Event, Header
from raykueue.run.journals import load
from raykueue.run.recorder.config import RecorderConfig
from raykueue.run.recorder.launch import start_recorder
from raykueue.run.recorder.scopes import ScopeNames
from raykueue.run.recording import Recording
from tests.kube.fake_api import FakeApi


class Cluster:
    """A fake API server in a thread."""

    def __init__(self) -> None:
        self.api = FakeApi()
        self.api.put("Pod", "a", "ns")
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))
        self._thread.start()
        assert self._started.wait(5)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self.api:
            self._started.set()
            await self._stop.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)


@pytest.fixture
def config(tmp_path: Path) -> Iterator[RecorderConfig]:
    cluster = Cluster()
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fake",
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
        "clusters": [{"name": "fake", "cluster": {"server": cluster.api.access.server}}],
        "users": [{"name": "fake", "user": {}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")
    yield RecorderConfig(str(path), "raykueue-sentinel-test", pair={"kueue": "0.19.2", "kuberay": "1.6.2"})
    cluster.close()


def test_a_recorder_records_until_its_input_ends(tmp_path: Path, config: RecorderConfig) -> None:
    recorder = start_recorder(tmp_path, config)
    try:
        assert recorder.alive()
        os.kill(recorder.pid, signal.SIGINT)  # ctrl-C is the owner's business
        with Recording(recorder.socket) as recording:
            feed = recording.open(ScopeNames("s", namespaces=("ns",)))
            assert [event.object["metadata"]["name"] for event in feed.events] == ["a"]
            judged = recording.judge("s")
            assert (judged.findings, judged.obligations) == ((), ())
    finally:
        assert recorder.stop() == 0
    assert not recorder.alive()
    records = load(tmp_path / "journal.jsonl")
    assert isinstance(records[0], Header)
    assert any(isinstance(record, Event) for record in records)


def test_sigterm_ends_it_cleanly_and_its_clients_hear_of_it(tmp_path: Path, config: RecorderConfig) -> None:
    recorder = start_recorder(tmp_path, config)
    try:
        with Recording(recorder.socket) as recording:
            feed = recording.open(ScopeNames("s", namespaces=("ns",)))
            os.kill(recorder.pid, signal.SIGTERM)
            with pytest.raises(RecorderError, match="the connection is lost"):
                feed.wait(lambda _: None, time.monotonic() + 10)
    finally:
        assert recorder.stop() == 0


def test_a_recorder_that_can_not_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("no: config", encoding="utf-8")
    with pytest.raises(RecorderError, match=r"(?s)ended with code 3.*recorder: kubeconfig .*kubeconfig"):
        start_recorder(tmp_path, RecorderConfig(str(tmp_path / "kubeconfig"), "raykueue-sentinel-test"))


def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecorderError, match=r"recorder\.json"):
        RecorderConfig.load(tmp_path)
