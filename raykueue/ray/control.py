"""How a test process says what becomes of a Ray job: one protocol for any Ray, and the simulated Ray's client.

Nothing here waits for KubeRay or Kueue: a call returns when Ray itself, and the submitter, are where they should be.
"""

from __future__ import annotations

import copy
import json
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from raykueue.errors import InfraError, UsageError
from raykueue.ray.manifests import Prepared

DEADLINE_S = 40.0
"""Of one call. The simulated Ray itself waits up to 20 s for a read that was asked for, and 15 s for the API server."""


class RayControl(Protocol):
    """What every kind of Ray offers to a test."""

    def prepared(self, rayjob: Mapping[str, Any]) -> Prepared:
        """The RayJob as it is to be created, so that a test can say when its Ray job ends; and what was replaced."""
        ...

    def finish(
        self,
        namespace: str,
        name: str,
        exit_code: int = 0,
        *,
        when_running: bool = False,
        after_read: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        """Ends the Ray job of a RayJob: SUCCEEDED for exit code 0, else FAILED; then its submitter ends.

        `when_running`: if it doesn't run yet, as soon as it does; then the answer is empty. `after_read`: the submitter
        ends only once KubeRay has read the terminal state. It returns when that is so: for a Ray that can't tell.

        Raises:
            UsageError: it doesn't run; the message tells what it does.
            InfraError: it could not be done, or told, in time.
        """
        ...

    def stop(self, namespace: str, name: str) -> dict[str, Any]:
        """A user stops the Ray job: STOPPED. Raises as `finish`."""
        ...

    def state(self, namespace: str, name: str) -> dict[str, Any]:
        """At least `submission_id`, `status` (PENDING, RUNNING, SUCCEEDED, FAILED, STOPPED, or None: unknown to the
        cluster) and `times` (ms since the epoch). Raises as `finish`."""
        ...


class SimulatedRay:
    """The simulated Ray behind a control socket. Every call is a connection of its own: safe in threads and forks."""

    def __init__(self, socket_path: Path, deadline_s: float = DEADLINE_S) -> None:
        self._path = socket_path
        self._deadline_s = deadline_s

    def prepared(self, rayjob: Mapping[str, Any]) -> Prepared:
        """As `RayControl.prepared`: nothing needs to be another."""
        return Prepared(copy.deepcopy(dict(rayjob)))

    def finish(
        self,
        namespace: str,
        name: str,
        exit_code: int = 0,
        *,
        message: str = "",
        when_running: bool = False,
        submitter_exit_code: int | None = None,
        after_read: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        """As `RayControl.finish`; answers the state.

        `message` is Ray's for the job. The submitter's exit code follows from mode and result unless it is given.
        `after_read`: its dashboard knows what KubeRay has read, so it isn't called. A failing SidecarMode submitter
        exits 1, and the reason that KubeRay then gives (AppFailed or SubmissionFailed) depends on what it read before
        (rayjob_controller.go:1067-1080@v1.6.2): this makes it AppFailed.
        """
        about = {
            "exit_code": exit_code,
            "message": message,
            "when": "running" if when_running else "now",
            "submitter_exit_code": submitter_exit_code,
            "after_read": after_read is not None,
        }
        return self._ask_object("finish", namespace, name, **about)

    def stop(self, namespace: str, name: str) -> dict[str, Any]:
        """As `RayControl.stop`; answers the state."""
        return self._ask_object("stop", namespace, name)

    def state(self, namespace: str, name: str) -> dict[str, Any]:
        """As `RayControl.state`, with the submitter pod, the head pod, and whether the job's head is gone (`lost`)."""
        return self._ask_object("state", namespace, name)

    def hold(self, namespace: str, name: str) -> None:
        """Ray jobs of this RayJob stay PENDING until `release`.

        Raises:
            UsageError: the job has left PENDING already.
        """
        self._ask("hold", namespace=namespace, name=name)

    def release(self, namespace: str, name: str) -> None:
        """Undoes `hold`.

        Raises:
            UsageError: it isn't held.
        """
        self._ask("release", namespace=namespace, name=name)

    def fail_submission(self, namespace: str, name: str, exit_code: int = 1, attempts: int | None = None) -> None:
        """Its next `attempts` submitters (None: every one) end with `exit_code`, and nothing is submitted.

        Raises:
            UsageError: the job is submitted already, or the RayJob's mode has no submitter.
        """
        self._ask("fail_submission", namespace=namespace, name=name, exit_code=exit_code, attempts=attempts)

    def submit(self, namespace: str, name: str, submission_id: str) -> dict[str, Any]:
        """Submits a Ray job to the RayJob's cluster, as the user of an interactive RayJob does before setting its
        `spec.jobId`; answers the state.

        Raises:
            UsageError: no head of it runs, or it has a job of that id.
        """
        return self._ask_object("submit", namespace, name, submission_id=submission_id)

    def times(self) -> list[dict[str, Any]]:
        """Of every Ray job whose RayJob still exists: submitted, started, ended, read and submitter_ended, in ms."""
        return list(self._ask("times"))

    def calls(self) -> dict[str, Any]:
        """Dashboard calls answered so far: {"answered": {"GET /api/jobs/{id}": {"200": 12}}, "unexpected": {…}}."""
        return dict(self._ask("calls"))

    def _ask_object(self, do: str, namespace: str, name: str, **about: Any) -> dict[str, Any]:
        return dict(self._ask(do, namespace=namespace, name=name, **about))

    def _ask(self, do: str, **about: Any) -> Any:
        what = f"simulated Ray, {do} {about.get('namespace', '')}/{about.get('name', '')}".removesuffix(" /")
        end = time.monotonic() + self._deadline_s
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(self._deadline_s)
                connection.connect(str(self._path))
                connection.sendall(json.dumps({"id": 1, "do": do, **about}).encode() + b"\n")
                line = _read_line(connection, end)
        except TimeoutError as error:
            raise InfraError(f"{what}: no answer within {self._deadline_s:g} s") from error
        except OSError as error:
            raise InfraError(f"{what}: {self._path} does not answer ({error}); see the component's log") from error
        if not line.endswith(b"\n"):
            raise InfraError(f"{what}: the connection was closed without an answer; see the component's log")
        answer = json.loads(line)
        if "error" in answer:
            raise (UsageError if answer.get("kind") == "usage" else InfraError)(f"{what}: {answer['error']}")
        return answer["ok"]


def _read_line(connection: socket.socket, end: float) -> bytes:
    """Up to a line break, or what came before the other side closed.

    Raises:
        TimeoutError: `end`, by the monotonic clock, has passed.
    """
    parts: list[bytes] = []
    while not (parts and parts[-1].endswith(b"\n")):
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        part = connection.recv(1 << 16)
        if not part:
            break
        parts.append(part)
    return b"".join(parts)
