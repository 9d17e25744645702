"""An embedded cluster: started cold or from a saved state, attached to, stopped."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from raykueue.clusters import graph
from raykueue.clusters.embedded import kwok
from raykueue.clusters.embedded.bootstrap import Bootstrap
from raykueue.clusters.embedded.controlplane import ControlPlane
from raykueue.clusters.embedded.keeping import Keeping, tail
from raykueue.clusters.embedded.ports import Ports
from raykueue.clusters.embedded.saved import SavedState
from raykueue.clusters.embedded.seats import Components
from raykueue.clusters.folder import ClusterFolder
from raykueue.clusters.protocol import ComponentSpec, Container, Manifests, Tier
from raykueue.errors import ClusterError, ComponentDied

_TRIES = 3
"""Starts: when a port that was free a moment ago is taken, or a saved state is damaged. Nothing else is tried again."""
_PORT_TAKEN = "address already in use"


class EmbeddedCluster:
    """Real etcd, API server, controllers and scheduler as processes on loopback; KWOK's nodes."""

    tier: Tier = "control-plane"

    def __init__(
        self,
        folder: ClusterFolder,
        binaries: Mapping[str, Path],
        kwok_sources: Path,
        cache: Path,
        log: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = folder.name
        self.kubeconfig = folder.path / "kubeconfig"
        self.probing = "default"
        self.timings: list[graph.Timing] = []
        self.from_saved = False
        self.about: dict[str, Any] = {}
        """Written beside the ports, for whoever attaches: the pair, the lock's digest."""
        self._folder = folder
        self._binaries = binaries
        self._stages = kwok.stages(kwok_sources)
        self._cache = cache
        self._log = log
        self._keeping: Keeping | None = None
        self._components: Components | None = None

    def start(self, crds: Manifests, components: Sequence[ComponentSpec]) -> None:
        """Everything up: control plane, nodes, CRDs Established, components ready.

        A saved state from which nothing starts is dropped, and the cluster started cold.

        Raises:
            ClusterError: with the component's own last lines of log.
        """
        for attempt in range(1, _TRIES + 1):
            try:
                self._start_once(crds, components)
                return
            except ClusterError as error:
                self.stop()
                if attempt == _TRIES:
                    raise
                if _PORT_TAKEN in str(error):
                    self._log(f"a port was taken by somebody else; starting again ({attempt} of {_TRIES - 1})")
                elif self.from_saved:
                    self._log(f"can't start from the saved state, starting cold: {str(error).splitlines()[0]}")
                    SavedState.of(self._cache, self._digest(crds, components)).drop()
                else:
                    raise
            except BaseException:
                self.stop()
                raise

    def attach(self, components: Sequence[ComponentSpec]) -> None:
        """Takes over a cluster that runs already."""
        about = self._folder.about
        ports = Ports()
        ports.restore(about["ports"])
        self._keeping = Keeping(self._folder.path)
        self._components = self._seat(ports, components)

    def detach(self) -> None:
        """From now on the cluster outlives this process."""
        self._keeper.detach()

    def watch(self, on_death: Callable[[ComponentDied], None]) -> None:
        """Tells at once, from a thread of its own, when a component ends by itself."""
        self._keeper.watch(on_death)

    def check(self) -> None:
        """Whether everything that was started still runs.

        Raises:
            ComponentDied: something ended by itself; with its last lines of log.
        """
        for name in self._keeper.status():
            self._keeper.check(name)

    def logs(self, component: str) -> str:
        """The last lines of a component's log."""
        return tail(self.log_file(component), lines=40)

    def log_file(self, component: str) -> Path:
        """All that a component has logged since the cluster was made."""
        return self._folder.path / f"{component}.log"

    def programs(self) -> dict[str, Path]:
        """Component → the program that runs as its process; of those that run."""
        found = {}
        for name, about in self._keeper.status().items():
            with contextlib.suppress(psutil.Error):
                found[name] = Path(psutil.Process(int(about["pid"])).exe())
        return found

    def containers(self) -> dict[str, list[Container]]:
        """None: components are processes."""
        return {}

    def kubelets(self) -> dict[str, str]:
        """None: KWOK plays them."""
        return {}

    def first_words(self, component: str) -> Iterator[str]:
        """All that a component has logged since the cluster was made."""
        with (
            contextlib.suppress(OSError),
            self.log_file(component).open(encoding="utf-8", errors="replace") as lines,
        ):
            yield from lines

    def export_logs(self, folder: Path) -> None:
        """Copies every log into a folder."""
        for log in self._folder.path.glob("*.log"):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, folder)

    @property
    def how(self) -> str:
        """How it came up."""
        return "from a saved state" if self.from_saved else "cold"

    def stop(self) -> None:
        """Ends every process and removes the folder."""
        if self._keeping is not None:
            self._keeping.stop()
            self._keeping = None
        self._folder.reclaim()

    def close(self) -> None:
        """Lets go of a cluster that stays up."""
        if self._keeping is not None:
            self._keeping.close()
            self._keeping = None

    def kill(self, component: str) -> None:
        """Ends a component abruptly, and leaves it down."""
        self._keeper.kill(component)

    def start_component(self, component: str) -> None:
        """Starts it again, with the settings it had; returns when it is ready."""
        self._seats.start(component)
        self._seats.wait_ready(component)

    def replace(self, component: ComponentSpec) -> None:
        """Restarts a component with other settings; returns when it is ready."""
        self._keeper.kill(component.name)
        self._seats.specs[component.name] = component
        self.start_component(component.name)

    def socket_folder(self, component: str) -> Path:
        """Where a component keeps its control socket."""
        return self._seats.folder_of(component)

    @property
    def _keeper(self) -> Keeping:
        if self._keeping is None:
            raise ClusterError(f"cluster {self.name} is not running")
        return self._keeping

    @property
    def _seats(self) -> Components:
        if self._components is None:
            raise ClusterError(f"cluster {self.name} is not running")
        return self._components

    def _start_once(self, crds: Manifests, components: Sequence[ComponentSpec]) -> None:
        begun = time.time()
        path = self._folder.path
        path.mkdir(mode=0o700, exist_ok=True)
        state = SavedState.of(self._cache, self._digest(crds, components))
        self.from_saved = state.exists()
        ports = Ports()
        self._keeping = Keeping.launch(path)
        self._components = self._seat(ports, components)
        plane = ControlPlane(self._binaries, path, ports)
        bootstrap = Bootstrap(plane, self._keeping, self._components, self.kubeconfig, self._stages)
        steps = bootstrap.from_saved(state) if self.from_saved else bootstrap.cold(crds)
        self.timings = graph.run(steps, self._give_up)
        self.check()  # some components nobody waits for
        services = self._components.service_ports()
        if not self.from_saved:
            state.save(path, int(self._keeping.status()["etcd"]["pid"]), services)
        self._folder.describe(
            {
                **self.about,
                "kubeconfig": str(self.kubeconfig),
                "ports": ports.table(),
                "started": begun,
                "seconds": round(time.time() - begun, 2),
                "owner": os.getpid(),
            }
        )

    def _give_up(self) -> None:
        # By a connection of its own: others wait for answers on ours.
        with contextlib.suppress(ClusterError):
            Keeping(self._folder.path).stop()

    def _seat(self, ports: Ports, components: Sequence[ComponentSpec]) -> Components:
        return Components(self._folder.path, ports, self._keeper, components)

    def _digest(self, crds: Manifests, components: Sequence[ComponentSpec]) -> str:
        content: list[Any] = [list(crds), self._stages, kwok.nodes()]
        content += [[part.name, list(part.objects), list(part.webhooks)] for part in components]
        content.append([str(path.parent.name) for _, path in sorted(self._binaries.items())])
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
