"""Bringing a cluster up, or attaching to one, with its recorder: everything that tests then share."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raykueue.audit.thresholds import Thresholds
from raykueue.clusters.folder import ClusterFolder, reclaim_dead
from raykueue.clusters.protocol import Cluster, ComponentSpec
from raykueue.controllers.readiness import prove_controllers, prove_webhooks
from raykueue.controllers.settings import DEFAULT, Settings
from raykueue.errors import ClusterError, ComponentDied
from raykueue.kube.access import load_access
from raykueue.kube.client import Api
from raykueue.model.versions import Pair, Versions
from raykueue.run.assembly import CONTROLLERS, Assembly
from raykueue.run.backends import Backend, Log, backend_of, ray_of, remembered
from raykueue.run.canary import Canary
from raykueue.run.detected import detect
from raykueue.run.drift import Shipped, drift, refusal
from raykueue.run.leftovers import reclaim_runs
from raykueue.run.options import RunOptions
from raykueue.run.recorder.config import RecorderConfig
from raykueue.run.recorder.launch import RecorderProcess, start_recorder
from raykueue.run.recording import Recording
from raykueue.toolchain.builder import Toolchain
from raykueue.toolchain.lock import load_versions

CLUSTER_LOGS = "cluster-logs"
"""Folder of the run in which a cluster that did not start has left its logs."""


@dataclass
class LiveCluster:
    """A cluster that is up and proven, and what is known of it."""

    cluster: Cluster
    assembly: Assembly
    stays: bool
    """It is there after the run: it was before, or is to be kept."""
    ours: bool = True
    """It was made by this suite, so what goes on in it that no test knows of is our fault."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Where the time went until here."""
    kubernetes: str = ""
    """The version that the API server says; empty until it was asked."""
    drift: list[str] = field(default_factory=list)
    """How what runs differs from what was pinned: only with --allow-drift can there be anything."""
    _in_force: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Component to its part of the settings; empty while it is not known, after a start that failed."""

    @property
    def pair(self) -> Pair:
        """The versions that run."""
        return self.assembly.pair

    @property
    def versions(self) -> dict[str, str]:
        """What runs here, or was used to make it, beside KubeRay and Kueue."""
        return ({"kubernetes": self.kubernetes} if self.kubernetes else {}) | dict(self.assembly.made_with)

    @property
    def ray(self) -> dict[str, Any]:
        """How a Ray job is controlled (`ray_of`)."""
        return ray_of(self.cluster)

    def change(self, settings: Settings, recording: Recording) -> None:
        """Restarts the controllers whose settings differ, and proves that they work. The journal says when."""
        for component in self._changed(settings):
            wanted = _part(settings, component.name)
            self._in_force[component.name] = {}
            recording.mark(f"{component.name}-down", settings=settings.as_dict())
            self.cluster.replace(component)
            recording.mark(f"{component.name}-up")
            self._in_force[component.name] = wanted
        api = Api(load_access(self.cluster.kubeconfig))
        prove_webhooks(api, self.cluster.logs, self.cluster.probing)
        prove_controllers(api, self.cluster.logs, self.cluster.probing)

    def end(self) -> None:
        """Stops the cluster if it was made for this run alone, else lets go of it with its default settings."""
        if not self.stays:
            self.cluster.stop()
            return
        try:
            for component in self._changed(DEFAULT):
                self.cluster.replace(component)
        finally:
            self.cluster.close()

    def _changed(self, settings: Settings) -> list[ComponentSpec]:
        """Controllers that run with other settings than these, or with nobody knows which."""
        return [
            component
            for component in self.assembly.controllers(settings)
            if self._in_force.get(component.name, _part(DEFAULT, component.name)) != _part(settings, component.name)
        ]


def bring_up(
    folder: ClusterFolder, pair: Pair, versions: Versions, log: Log, backend: Backend, evidence: Path | None = None
) -> LiveCluster:
    """Starts a cluster in `folder` and proves that both controllers work.

    Raises:
        ToolchainError: something can't be built.
        ClusterError: something does not start, with its own last words; its logs are in `evidence`, if it left any.
    """
    began = time.monotonic()
    backend.preflight(folder)
    for name, ended in reclaim_dead(log).items():
        if ended:
            log(f"cleaned up after cluster {name}, whose run died: ended {', '.join(ended)}")
    assembly = backend.assemble(Toolchain(versions, log=log), versions, pair)
    built = time.monotonic()
    doing = "using" if backend.name == "existing" else "starting"
    log(f"{doing} {assembly.pair} on {_with_article(backend.name)} cluster")
    cluster = backend.cluster(folder, assembly, log)
    cluster.about = {"pair": pair.versions(), "lock": assembly.lock_digest, **remembered(assembly)}
    with ended_if_it_fails(cluster, evidence):
        cluster.start(assembly.crds(), assembly.components())
        started = time.monotonic()
        api = Api(load_access(cluster.kubeconfig))
        prove_webhooks(api, cluster.logs, cluster.probing)
        accepted = time.monotonic()
        prove_controllers(api, cluster.logs, cluster.probing)
        log(f"cluster up in {time.monotonic() - built:.1f} s ({cluster.how})")
    live = LiveCluster(cluster, assembly, stays=False, ours=_ours(backend))
    live.seconds = {
        "binaries": built - began,
        "cluster": started - built,
        "webhook": accepted - started,
        "controllers": time.monotonic() - accepted,
    }
    return live


@contextlib.contextmanager
def ended_if_it_fails(cluster: Cluster, evidence: Path | None) -> Iterator[None]:
    """Ends a cluster that is not to stay after a failure; its logs are in `evidence` then, if it left any.

    Whoever interrupts does not wait for logs.
    """
    try:
        yield
    except BaseException as error:
        try:
            if evidence is not None and isinstance(error, Exception):
                _keep_logs(cluster, evidence)
        finally:
            cluster.stop()
        raise


def attach(folder: ClusterFolder, versions: Versions, options: RunOptions) -> LiveCluster:
    """Takes over a cluster that was left up.

    Raises:
        ClusterError: there is none of that name.
        UsageError: it runs other versions than were asked for.
    """
    began = time.monotonic()
    if not folder.alive():
        raise ClusterError(f"no cluster {folder.name} is up; `raykueue up {folder.name}` starts one")
    has = folder.about["pair"]
    options.must_fit(has)
    pair = versions.made_of(has)
    backend = backend_of(options, folder)
    assembly = backend.assemble(Toolchain(versions), versions, pair)
    cluster = backend.cluster(folder, assembly, lambda _: None)
    cluster.attach(assembly.components())
    try:
        prove_webhooks(Api(load_access(cluster.kubeconfig)), cluster.logs, cluster.probing)
    except BaseException:
        cluster.close()
        raise
    seconds = {"attach": time.monotonic() - began}
    return LiveCluster(cluster, assembly, stays=True, ours=_ours(backend), seconds=seconds)


@dataclass
class LiveRun:
    """A cluster, the recorder of this run, and the lock on the cluster."""

    live: LiveCluster
    recorder: RecorderProcess
    recording: Recording
    canary: Canary
    _exit: contextlib.ExitStack

    @classmethod
    def open(cls, options: RunOptions, folder: Path, log: Log, on_death: Callable[[ComponentDied], None]) -> LiveRun:
        """Brings everything up for one run whose own files are in `folder`."""
        versions = load_versions()
        reclaim_runs()
        with contextlib.ExitStack() as stack:
            name = options.reuse or options.name or f"run-{uuid.uuid4().hex[:8]}"
            cluster_folder = ClusterFolder.named(name)
            if options.reuse and not cluster_folder.alive():
                raise ClusterError(f"no cluster {name} is up; `raykueue up {name}` starts one")
            stack.enter_context(cluster_folder.locked(f"pytest, run {folder.name}"))
            if options.reuse:
                live = attach(cluster_folder, versions, options)
            else:
                if cluster_folder.alive() and cluster_folder.detached():
                    raise ClusterError(f"cluster {name} is up already: --reuse-cluster={name} uses it")
                backend = backend_of(options)
                pair = backend.pair(versions, options)
                live = bring_up(cluster_folder, pair, versions, log, backend, evidence=folder / CLUSTER_LOGS)
                live.stays = options.keep
            stack.callback(live.end)
            if options.keep:
                live.cluster.detach()
                log(f"cluster {name} stays up: `pytest --reuse-cluster={name}` uses it, `raykueue down {name}` ends it")
            live.cluster.watch(on_death)
            began = time.monotonic()
            beside = ThreadPoolExecutor(1)
            comparing = beside.submit(_differences, live, versions)
            beside.shutdown(wait=False)
            recorder = start_recorder(folder, _recorder_config(live))
            stack.callback(recorder.stop)
            recording = Recording(recorder.socket)
            stack.callback(recording.disconnect)
            canary = Canary(Api(load_access(live.cluster.kubeconfig)), recording)
            canary.release()
            if live.stays or not live.ours:
                stack.callback(canary.remove)
            live.seconds["recorder"] = time.monotonic() - began
            live.drift = comparing.result()
            if live.drift and not options.allow_drift:
                raise refusal(live.drift)
            live.seconds["compared with versions.toml"] = time.monotonic() - began - live.seconds["recorder"]
            return cls(live, recorder, recording, canary, stack.pop_all())

    def close(self) -> None:
        """Ends recorder and cluster, in this order; errors of one don't keep the other up."""
        self._exit.close()

    def describe(self) -> dict[str, Any]:
        """What a test process needs to know."""
        return {
            "kubeconfig": str(self.live.cluster.kubeconfig),
            "pair": self.live.pair.versions(),
            "tier": self.live.cluster.tier,
            "recorder": str(self.recorder.socket),
            "ray": self.live.ray,
        }


def _keep_logs(cluster: Cluster, folder: Path) -> None:
    with contextlib.suppress(ClusterError, OSError):
        cluster.export_logs(folder)
    with contextlib.suppress(OSError):  # there is something in it
        folder.rmdir()


def _differences(live: LiveCluster, versions: Versions) -> list[str]:
    detected = detect(Api(load_access(live.cluster.kubeconfig)), live.cluster, CONTROLLERS)
    live.kubernetes = detected.kubernetes.removeprefix("v")
    made = live.assembly
    shipped = Shipped(made.crds(), made.controllers(DEFAULT), made.nodes) if live.ours else None
    return drift(detected, live.pair, versions, shipped)


def _recorder_config(live: LiveCluster) -> RecorderConfig:
    return RecorderConfig(
        kubeconfig=str(live.cluster.kubeconfig),
        namespace=f"raykueue-sentinel-{uuid.uuid4().hex[:6]}",
        pair=live.pair.versions(),
        settings=dataclasses.asdict(Thresholds()),
    )


def _ours(backend: Backend) -> bool:
    return backend.name != "existing"


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _part(settings: Settings, component: str) -> dict[str, Any]:
    return {key: value for key, value in settings.as_dict().items() if key.startswith(component)}
