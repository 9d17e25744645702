"""Where clusters live: one folder each, its lock, and what a dead run left in it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import filelock
import platformdirs
import psutil

from raykueue.errors import ClusterError, ClusterLocked, UsageError

_SAME_START_SECONDS = 2.0
"""A pid whose process started at another time is somebody else's by now."""
_END_SECONDS = 10.0
"""To end a process that was killed."""
_REMOVE_SECONDS = 120.0
"""For a command that removes what is no process of ours; three kind nodes took 9 to 17 s on a busy machine."""
_IN_FLIGHT_SECONDS = 5.0
"""For what a killed command had asked of a daemon, which makes it nevertheless: seen with containers."""
_BEGIN_SECONDS = 60.0
"""Between making a folder and taking its lock, on the busiest machine."""
_LOCK, _HOLDER = "lock", "holder.json"


def state_root() -> Path:
    """RAYKUEUE_STATE, or the user's state directory. Readable by the user only."""
    chosen = os.environ.get("RAYKUEUE_STATE")
    root = Path(chosen).expanduser().absolute() if chosen else platformdirs.user_state_path("raykueue")
    folder = root / "clusters"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True, slots=True)
class Removal:
    """A command that ends what is no process of ours, whatever state that is in; it does no harm the second time."""

    argv: Sequence[str]
    env: Mapping[str, str]
    """All of its environment."""
    gone: Sequence[str] = ()
    """What it says when there is nothing to remove, should it call that a failure."""
    mark: str = ""
    """`NAME=value` in the environment of processes that may still make more of it: they are ended first."""


@dataclass(frozen=True, slots=True)
class ClusterFolder:
    """The folder of one cluster, by name."""

    path: Path

    @classmethod
    def named(cls, name: str) -> ClusterFolder:
        """The folder that a cluster of this name has, whether it exists or not."""
        if not name.replace("-", "").isalnum() or len(name) > 30:
            raise UsageError(f"cluster name {name!r}: letters, digits and dashes only, 30 at most")
        return cls(state_root() / name)

    @property
    def name(self) -> str:
        """Of the cluster."""
        return self.path.name

    @property
    def about(self) -> dict[str, Any]:
        """What was written by `describe`: pair, kubeconfig, ports; empty if it never came up."""
        return _read(self.path / "cluster.json")

    def describe(self, about: dict[str, Any]) -> None:
        """Writes what others need to attach to the running cluster."""
        partial = self.path / "cluster.json.partial"
        partial.write_text(json.dumps(about, indent=1))
        partial.replace(self.path / "cluster.json")

    def keeper(self) -> psutil.Process | None:
        """Its keeper, if that runs."""
        keeper = _read(self.path / "state.json").get("keeper")
        return None if keeper is None else _process(keeper)

    def alive(self) -> bool:
        """Whether its keeper runs; of what has none, whether somebody has it, or it was left up on purpose."""
        return self.stands() or (bool(self.removals()) and bool(self.holder()))

    def stands(self) -> bool:
        """As `alive`, whether anybody has it or not."""
        return self.detached() if self.removals() else self.keeper() is not None

    def removals(self) -> list[Removal]:
        """How to end what is no process of ours; empty for clusters that consist of processes."""
        return [Removal(**about) for about in _read(self.path / "state.json").get("removals", [])]

    def record(self, removals: Sequence[Removal], *, detached: bool = False) -> None:
        """Writes how the cluster is to be ended, for whoever finds it when its owner is dead.

        Call it before there is anything to end. `detached`: it is to stay up without an owner.
        """
        about = {"removals": [asdict(removal) for removal in removals], "detached": detached}
        partial = self.path / "state.json.partial"
        partial.touch(mode=0o600)
        partial.write_text(json.dumps(about, indent=1))
        partial.replace(self.path / "state.json")

    def holder(self) -> str:
        """Who has it now, such as "pid 12 (raykueue up) since 18:30:02"; empty if nobody has."""
        about = _read(self.path / _HOLDER)
        try:
            begun = psutil.Process(int(about["pid"])).create_time()
        except (psutil.Error, KeyError):
            return ""
        since = time.strftime("%H:%M:%S", time.localtime(about["since"]))
        same = begun < about["since"] + _SAME_START_SECONDS
        return f"pid {about['pid']} ({about['what']}) since {since}" if same else ""

    def detached(self) -> bool:
        """Whether it was left up on purpose."""
        return bool(_read(self.path / "state.json").get("detached"))

    @contextlib.contextmanager
    def locked(self, what: str) -> Iterator[None]:
        """Holds the cluster for one run; `what` tells others who has it.

        Raises:
            ClusterLocked: somebody else has it; the message says who.
        """
        self.path.mkdir(mode=0o700, exist_ok=True)
        holder = self.path / _HOLDER
        lock = filelock.FileLock(self.path / _LOCK, timeout=0, is_singleton=False)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise ClusterLocked(
                f"cluster {self.name} is in use by {self.holder() or 'a process that has just taken it'}; "
                "wait for it, or start a run with a cluster of its own (without --reuse-cluster)"
            ) from None
        try:
            holder.write_text(json.dumps({"pid": os.getpid(), "what": what, "since": time.time()}))
            yield
        finally:
            holder.unlink(missing_ok=True)
            if not {path.name for path in self.path.glob("*")} - {_LOCK}:  # nothing started in it, or all is over
                shutil.rmtree(self.path, ignore_errors=True)
            lock.release()

    def reclaim(self) -> list[str]:
        """Ends what is left of a cluster whose keeper is gone, and removes its folder. Returns the names ended.

        Lock and holder stay for whoever has them, and go with `locked`: whoever starts a second time in the same folder
        still has the lock that others look at.

        Raises:
            ClusterError: the cluster is alive, or one of its processes can't be ended.
        """
        if self.alive():
            raise ClusterError(f"cluster {self.name} is running; `raykueue down {self.name}` ends it")
        return self.clear()

    def clear(self) -> list[str]:
        """As `reclaim`, also for the cluster of whoever calls, whose keeper has ended or that never had one.

        Raises:
            ClusterError: something of it can't be ended; its folder stays, so that it can be tried again.
        """
        removals = self.removals()
        at_work = [mark for mark in {removal.mark for removal in removals} - {""} if _end_marked(mark)]
        _remove_all(self.name, removals)
        if at_work:
            time.sleep(_IN_FLIGHT_SECONDS)  # nobody tells when the last of what they had asked for is made
            _remove_all(self.name, removals)
        components = _read(self.path / "state.json").get("components", {})
        ended = {name: process for name, about in components.items() if (process := _process(about)) is not None}
        for process in ended.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        for name, process in ended.items():
            if not ends_within(process, _END_SECONDS):
                raise ClusterError(f"{name} of cluster {self.name} (pid {process.pid}) was killed, but does not end")
        for left in self.path.glob("*"):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            elif left.name not in (_LOCK, _HOLDER):
                left.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.path.rmdir()
        return [*ended, *(["its nodes"] if removals else [])]


def made_by(folder: ClusterFolder) -> str:
    """The backend that made the cluster in this folder, as `--cluster` names it."""
    return str(folder.about.get("backend", "embedded"))


def clusters() -> list[ClusterFolder]:
    """Every cluster that has a folder."""
    return [ClusterFolder(path) for path in sorted(state_root().iterdir()) if path.is_dir()]


def reclaim_dead(trouble: Callable[[str], None] = lambda _: None) -> dict[str, list[str]]:
    """Cleans up after runs that died: {cluster: components ended}. Clusters that run, or are being made, stay.

    One that can't be ended holds nobody else up: `trouble` is told why, and the next call tries again.
    """
    gone: dict[str, list[str]] = {}
    for folder in clusters():
        if folder.alive() or _is_beginning(folder.path):
            continue
        try:
            with folder.locked("clean-up"):
                if not folder.stands():  # whoever had it meanwhile may have left it up
                    gone[folder.name] = folder.clear()
        except ClusterLocked:
            continue
        except ClusterError as error:
            trouble(str(error))
    return gone


def ends_within(process: psutil.Process, seconds: float) -> bool:
    """Waits until a process is over. A zombie is: in a container without an init it may stay one for ever."""
    deadline = time.monotonic() + seconds
    while _runs(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _remove_all(cluster: str, removals: Iterable[Removal]) -> None:
    for removal in removals:
        _remove(cluster, removal)


def _remove(cluster: str, removal: Removal) -> None:
    try:
        done = subprocess.run(
            removal.argv,
            env=dict(removal.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_REMOVE_SECONDS,
            check=False,
            start_new_session=True,  # ctrl-C is for us: half a removal would help nobody
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"cluster {cluster} can't be removed: {error}") from error
    said = f"{done.stdout.decode(errors='replace')}\n{done.stderr.decode(errors='replace')}".strip()
    if done.returncode and not any(words in said for words in removal.gone):
        raise ClusterError(
            f"cluster {cluster} can't be removed: `{' '.join(removal.argv)}` ended with code {done.returncode}: "
            f"{said.splitlines()[-1] if said else 'it said nothing'}"
        )


def _end_marked(mark: str) -> bool:
    """Ends what a killed run has left at work, such as a `kind create cluster` that goes on to make nodes.

    Returns whether there was any.
    """
    name, _, value = mark.partition("=")
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(name) == value:
                process.kill()
                found.append(process)
    for process in found:
        ends_within(process, _END_SECONDS)
    return bool(found)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _is_beginning(path: Path) -> bool:
    try:
        young = time.time() - path.stat().st_mtime < _BEGIN_SECONDS
        # A keeper whose owner was killed ends everything and takes its state.json away: the rest is still there.
        return young and not {left.name for left in path.iterdir()} - {_LOCK, _HOLDER}
    except FileNotFoundError:
        return False


def _process(about: dict[str, Any]) -> psutil.Process | None:
    try:
        process = psutil.Process(int(about["pid"]))
        same = abs(process.create_time() - float(about["started"])) < _SAME_START_SECONDS
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found
