"""The simulated Ray as a process of its own, started as a cluster starts it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from raykueue.errors import EXIT_INFRA, EXIT_USAGE, UsageError
from raykueue.ray.control import SimulatedRay
from raykueue.ray.simulated.component import RayConfig, RayProcess, ray_process, read_config
from tests.ray.fake_api import FakeApi, head, rayjob, submitter

DEADLINE_S = 20.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def prepared(folder: Path, server: str) -> RayProcess:
    kubeconfig = folder / "kubeconfig"
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
    }
    kubeconfig.write_text(yaml.safe_dump(document))
    process = ray_process(folder, kubeconfig, free_port())
    process.config_path.write_text(process.config.text())
    return process


async def started(process: RayProcess) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*process.argv, stdin=pipe, stdout=pipe, stderr=pipe)


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await body()

    asyncio.run(bounded())


def test_the_configuration_that_is_written_is_the_one_that_is_read(tmp_path: Path) -> None:
    process = ray_process(tmp_path, tmp_path / "kubeconfig", 12345, context="here")
    process.config_path.write_text(process.config.text())
    assert read_config(tmp_path) == process.config
    assert process.config == RayConfig(str(tmp_path / "kubeconfig"), 12345, str(tmp_path / "ray.sock"), "here")
    assert process.argv[1:] == ("-m", "raykueue.ray.simulated", "--folder", str(tmp_path))
    assert process.kuberay_env == {"HTTP_PROXY": "http://127.0.0.1:12345"}


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"port": 1}), json.dumps({"surprise": 1})])
def test_a_configuration_that_is_none_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "ray.json").write_text(content)
    with pytest.raises(UsageError, match=r"ray\.json is not the simulated Ray's configuration"):
        read_config(tmp_path)


@pytest.mark.parametrize("how", ["stdin", "SIGTERM"])
def test_the_process_says_ready_serves_and_ends_when_it_is_told(tmp_path: Path, how: str) -> None:
    async def body() -> None:
        api = FakeApi()
        api.put(rayjob("a", job_id="a-1", cluster="c"), head("c"), submitter("a"))
        async with api.serving() as server:
            process = prepared(tmp_path, server)
            child = await started(process)
            assert child.stdout is not None
            assert child.stdin is not None
            try:
                assert await child.stdout.readline() == b"ready\n"
                path = Path(process.config.control)
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
                state = await asyncio.to_thread(SimulatedRay(path).finish, "ns", "a")
                assert state["status"] == "SUCCEEDED"
                if how == "stdin":
                    child.stdin.close()
                else:
                    child.send_signal(signal.SIGTERM)
                assert await child.wait() == 0
                assert not path.exists()
            finally:
                if child.returncode is None:
                    child.kill()
                await child.communicate()

    run(body)


def test_a_process_without_a_configuration_or_a_free_port_says_so(tmp_path: Path) -> None:
    async def body() -> None:
        async with FakeApi().serving() as server:
            process = prepared(tmp_path, server)
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", process.config.port))
                taken.listen()
                child = await started(process)
                _, said = await child.communicate()
                assert child.returncode == EXIT_INFRA
                assert b"address already in use" in said
            process.config_path.unlink()
            child = await started(process)
            _, said = await child.communicate()
            assert child.returncode == EXIT_USAGE
            assert b"ray.json is not the simulated Ray's configuration" in said

    run(body)
