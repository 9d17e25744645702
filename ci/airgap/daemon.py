"""A private Docker daemon: started with state of its own in namespaces of its own, and undone without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from ci.airgap.machine import Machine, remove_cgroups, restore_sysctls
from ci.airgap.places import SOURCES, Places
from raykueue.errors import InfraError

SHIM = "fewer-capabilities"
"""The name of the runtime that asks for what this machine can grant only."""
NETWORK = "kind"
"""kind uses the network of this name, and makes it if it is missing: then with IPv6, which has no use here."""
SUBNET = "172.30.0.0/16"
PROBE = "raykueue.local/probe:1"

_START = 60.0
"""Seconds for the daemon to answer; it takes 2 to 5 on two busy cores."""
_STOP = 30.0
_CALL = 300.0
"""Seconds for one docker command."""
_SAME_START = 2.0
"""A pid whose process started at another time is somebody else's by now."""


@dataclass(frozen=True, slots=True)
class Helpers:
    """Binaries that the daemon needs."""

    proxy: Path
    """Publishes ports on the machine's loopback, in place of docker-proxy."""
    shim: Path
    """Stands in for runc where a capability is missing."""
    nonames: Path
    """The name server of a network that has no way out."""


class Daemon:
    """The private daemon, running or not."""

    def __init__(self, places: Places, log: Callable[[str], None]) -> None:
        self.places = places
        self._log = log

    def running(self) -> psutil.Process | None:
        """Its outermost process."""
        try:
            noted = json.loads(self.places.process.read_text(encoding="utf-8"))
            process = psutil.Process(noted["pid"])
            same = abs(process.create_time() - noted["started"]) < _SAME_START
            if same and process.status() != psutil.STATUS_ZOMBIE:
                return process
        except (OSError, ValueError, KeyError, psutil.NoSuchProcess):
            pass
        return None

    def docker(self, *arguments: str, check: bool = True, timeout: float = _CALL) -> subprocess.CompletedProcess[str]:
        """Runs `docker …` against it.

        Raises:
            InfraError: it failed, unless `check` is off, or took too long.
        """
        try:
            done = subprocess.run(
                ["docker", *arguments], env=self.environment(), capture_output=True, text=True, timeout=timeout
            )
        except subprocess.TimeoutExpired as error:
            raise InfraError(f"docker {' '.join(arguments)}: no end after {timeout:.0f} s") from error
        if check and done.returncode:
            raise InfraError(f"docker {' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()[-800:]}")
        return done

    def environment(self) -> dict[str, str]:
        """Ours, with the daemon in it."""
        return {**os.environ, "DOCKER_HOST": self.places.docker_host}

    def start(self, helpers: Helpers) -> None:
        """Starts it unless it runs; finds out by a trial whether containers need the shim.

        Raises:
            InfraError: it doesn't come up, or can run no privileged container.
        """
        with self._lock():
            if self.running():
                return
            self.places.state.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.places.data.mkdir(mode=0o711, parents=True, exist_ok=True)
            self._remember_machine()
            self._launch(helpers)
            if not self.docker("network", "ls", "-q", "--filter", f"name=^{NETWORK}$").stdout.strip():
                self.docker("network", "create", "--driver=bridge", f"--subnet={SUBNET}", NETWORK)

    def try_privileged(self, helpers: Helpers) -> str:
        """Runs a privileged container from the image PROBE, which must be there, and keeps the runtime that can do it.

        Returns its name.

        Raises:
            InfraError: neither runc nor the shim can.
        """
        said = {}
        current = self.docker("info", "--format={{.DefaultRuntime}}").stdout.strip()
        for runtime in dict.fromkeys((current, "runc", SHIM)):
            trial = ["run", "--rm", "--privileged", "--network=none", f"--runtime={runtime}", PROBE, "-v"]
            done = self.docker(*trial, check=False)
            if done.returncode == 0:
                if runtime != current:
                    self._configure(helpers, runtime)
                    self._dockerd().send_signal(signal.SIGHUP)  # it reads the default runtime again
                return runtime
            said[runtime] = done.stderr.strip()[-400:]
        raise InfraError(
            "no privileged container can be started here, which kind needs: " + "; ".join(map(": ".join, said.items()))
        )

    def stop(self, helpers: Callable[[], Helpers]) -> list[str]:
        """Ends it and puts the machine back to what it was before the start; images stay as a cache.

        After a daemon that was killed it is started once more, since only it can remove what its containers left on
        disk. Returns what is still not as it was, one line each.

        Raises:
            InfraError: it can't be ended.
        """
        if not self.places.state.exists():
            return []
        with self._lock():
            if self.running() is None and _any(self.places.data / "containers", self.places.data / "volumes"):
                self._log("the daemon was killed: starting it once more to remove its containers and volumes")
                self._launch(helpers())
            if self.running():
                self._empty()
                self._end()
            failed = self._restore()
            shutil.rmtree(self.places.state, ignore_errors=True)
        return failed

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        lock = FileLock(self.places.state.with_suffix(".lock"))
        Path(lock.lock_file).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise InfraError(f"another command is starting or stopping the daemon of {self.places.state}") from None
        try:
            yield
        finally:
            lock.release()

    def _remember_machine(self) -> None:
        now = Machine.look()
        try:
            if Machine.load(self.places.before).boot == now.boot:
                return  # a daemon that was killed: what it was before that one counts
        except (OSError, ValueError, TypeError):
            pass
        now.save(self.places.before)

    def _configure(self, helpers: Helpers, runtime: str) -> None:
        config = daemon_config(self.places, helpers, runtime)
        self.places.config.write_text(json.dumps(config, indent=2), encoding="utf-8")

    def _launch(self, helpers: Helpers) -> None:
        self._configure(helpers, "runc")
        self.places.socket.unlink(missing_ok=True)
        command = [
            "unshare",
            "--mount",
            "--propagation=private",
            "--",
            str(SOURCES / "inside"),
            "outer",
            str(helpers.nonames),
        ]
        with self.places.log.open("ab") as log:
            process = subprocess.Popen(
                [*command, "dockerd", f"--config-file={self.places.config}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        noted = {"pid": process.pid, "started": psutil.Process(process.pid).create_time()}
        self.places.process.write_text(json.dumps(noted), encoding="utf-8")
        deadline = time.monotonic() + _START
        while self.docker("version", check=False).returncode:
            if process.poll() is not None:
                raise InfraError(f"the Docker daemon ended at once. {self._last_lines()}")
            if time.monotonic() > deadline:
                process.kill()
                raise InfraError(f"the Docker daemon does not answer after {_START:.0f} s. {self._last_lines()}")
            time.sleep(0.1)

    def _last_lines(self) -> str:
        lines = self.places.log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:]
        return "\n".join([f"The end of {self.places.log}:", *lines])

    def _dockerd(self) -> psutil.Process:
        outer = self.running()
        for process in outer.children(recursive=True) if outer else []:
            if process.name() == "dockerd":
                return process
        raise InfraError(f"the daemon of {self.places.state} has no process dockerd: stop it, and start it again")

    def _empty(self) -> None:
        containers = self.docker("ps", "--all", "--quiet").stdout.split()
        if containers:
            self.docker("rm", "--force", "--volumes", *containers)
        volumes = self.docker("volume", "ls", "--quiet").stdout.split()
        if volumes:
            self.docker("volume", "rm", "--force", *volumes)
        self.docker("network", "prune", "--force")

    def _end(self) -> None:
        outer = self.running()
        if outer is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            self._dockerd().terminate()
        try:
            outer.wait(_STOP)
        except psutil.TimeoutExpired:
            outer.kill()  # and with it, everything in its namespaces
            outer.wait(_STOP)

    def _restore(self) -> list[str]:
        failed = remove_cgroups(self.places.cgroup)
        try:
            before = Machine.load(self.places.before)
        except (OSError, ValueError, TypeError) as error:
            return [*failed, f"how the machine was before is not known: {error}"]
        now = Machine.look()
        if now.boot != before.boot:
            return failed
        changed = before.changed_sysctls(now)
        for name, value in changed.items():
            self._log(f"sysctl {name.replace('/', '.')} is {value} again")
        return [*failed, *restore_sysctls(changed), *before.differences(Machine.look())]


def daemon_config(places: Places, helpers: Helpers, runtime: str) -> Mapping[str, Any]:
    """The daemon's configuration, with this runtime for containers that ask for none."""
    return {
        "hosts": [places.docker_host],
        "data-root": str(places.data),
        # Below /run, which the daemon has for itself.
        "exec-root": "/run/docker",
        "pidfile": "/run/docker.pid",
        # Containers are on the network of kind or on none.
        "bridge": "none",
        # One cgroup above all containers, not systemd's: so that it can be found and removed.
        "cgroup-parent": f"/{places.cgroup}",
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        # Or it makes /etc/docker.
        "deprecated-key-path": str(places.data / "key.json"),
        "userland-proxy-path": str(helpers.proxy),
        "runtimes": {SHIM: {"path": str(helpers.shim)}},
        "default-runtime": runtime,
        "log-opts": {"max-size": "50m"},
    }


def _any(*folders: Path) -> bool:
    # metadata.db and backingFsBlockDev belong to the daemon, not to a volume.
    return any(entry.is_dir() for folder in folders if folder.is_dir() for entry in folder.iterdir())
