"""The end of a job and what comes after it: how it is brought about, what is left, and when what is gone went."""

from __future__ import annotations

import time
from collections.abc import Callable, Set
from typing import TYPE_CHECKING

from raykueue.errors import WaitFailed
from raykueue.model.deletion.dimensions import Mode, Outcome
from raykueue.model.deletion.expected import BUSY_SECONDS, KUBERAY_SECONDS, Expected, Part, Status
from raykueue.model.deletion.observed import End, end, left, went
from raykueue.run.states import Running, ValidationFailed
from raykueue.run.timeouts import Timeouts

if TYPE_CHECKING:
    from raykueue.run.job import Job

_CLUSTER = frozenset({Part.CLUSTER, Part.HEAD, Part.WORKERS})
_PAST_ITS_DEADLINE = {"spec": {"activeDeadlineSeconds": 1}}


class Afterwards:
    """What becomes of a job that has ended."""

    def __init__(self, job: Job, ended: End, stop: float) -> None:
        """`stop`: seconds from when a pod is told to go until it is gone, at most."""
        self._job = job
        self._ended = ended
        self._stop = stop

    @property
    def status(self) -> Status:
        """How the RayJob said that it ended, the first time that it did."""
        return self._ended.status

    @property
    def end_time(self) -> float:
        """status.endTime, in seconds since the epoch: whole ones."""
        return self._ended.time

    @property
    def went(self) -> dict[Part, float]:
        """When each part that is gone was told to go: seconds after status.endTime."""
        feed, uid = self._job.history.feed, self._job.history.uid
        return went(feed.events, uid)

    def left_behind(self, about: Expected) -> frozenset[Part]:
        """What is left of the job: exactly what is expected, once that is so and has stayed so; else the last.

        What is expected to go has its time to go; what is expected to stay is watched for as long as anybody may
        still take it.
        """
        feed, uid = self._job.history.feed, self._job.history.uid

        def look(wanted: bool) -> Callable[[object], bool | None]:
            return lambda _: True if (left(feed.events, uid) == about.kept) is wanted else None

        if _within(lambda end: feed.wait(look(True), end), self._monotonic(about.patience + self._stop)):
            _within(lambda end: feed.wait(look(False), end), self._monotonic(about.watch))
        return left(feed.events, uid)

    def settle(self, of: Set[Part] = _CLUSTER) -> frozenset[Part]:
        """Waits until nothing is left `of` it, for as long as KubeRay may take to act and pods to stop.

        Returns what is left then.
        """
        feed, uid = self._job.history.feed, self._job.history.uid
        patience = self._monotonic(KUBERAY_SECONDS + BUSY_SECONDS + self._stop)
        _within(lambda end: feed.wait(lambda _: None if left(feed.events, uid) & of else True, end), patience)
        return left(feed.events, uid)

    def made(self, within: float) -> list[str]:
        """Waits so many seconds after status.endTime, or until a pod is made for the job; names of those made since."""
        history, ended = self._job.history, self._ended.arrived

        def pods() -> list[str]:
            born = [history.feed.history("Pod", pod["metadata"]["uid"])[0] for pod in history.pods()]
            return [event.object["metadata"]["name"] for event in born if event.arrived > ended]

        _within(lambda end: history.feed.wait(lambda _: True if pods() else None, end), self._monotonic(within))
        return pods()

    def _monotonic(self, seconds_after_the_end: float) -> float:
        return time.monotonic() + self._ended.time + seconds_after_the_end - time.time()


def conclude(job: Job, outcome: Outcome, timeouts: Timeouts) -> Afterwards:
    """Brings a running job to this end, and waits for it.

    Args:
        job: it runs; for DEADLINE_INITIALIZING its pods find no node.
        outcome: what becomes of it.
        timeouts: `state` until KubeRay has written that it ended; `stop` for its pods after that.

    Raises:
        WaitFailed: it does not end in time, or not at all.
    """
    seconds = timeouts.state
    match outcome:
        case Outcome.SUCCEEDED:
            job.finish()
        case Outcome.FAILED:
            _fail(job)
        case Outcome.STOPPED:
            job.stop()
        case Outcome.DEADLINE_RUNNING:
            job.edit(_PAST_ITS_DEADLINE)
        case Outcome.DEADLINE_INITIALIZING:
            _until_it_has_pods(job, seconds)
            job.edit(_PAST_ITS_DEADLINE)
        case Outcome.RETRIES_USED_UP:
            attempts = len(job.moments(Running))
            _fail(job)
            _until_it_runs_again(job, attempts, seconds)
            _fail(job)
    feed, uid = job.history.feed, job.history.uid

    def look(_: object) -> End | None:
        if job.history.is_in(ValidationFailed):
            raise WaitFailed(f"{job}: wanted its end ({outcome}), but its spec is invalid now: {job.said}")
        return end(feed.events, uid)

    try:
        return Afterwards(job, feed.wait(look, time.monotonic() + seconds), timeouts.stop)
    except TimeoutError:
        raise WaitFailed(
            f"{job}: wanted it to be Complete or Failed ({outcome}) within {seconds:g} s; it is {job.said}"
        ) from None


def _fail(job: Job) -> None:
    # A sidecar that fails ends with 1, and KubeRay then tells a failed job from a failed submission by what it has read
    # of the job before (rayjob_controller.go:1067-1080@v1.6.2).
    job.finish(exit_code=1, after_read=job.manifest["spec"].get("submissionMode") == Mode.SIDECAR)


def _until_it_runs_again(job: Job, attempts: int, seconds: float) -> None:
    # By count: on an idle machine the next attempt may be there before we look.
    def look(_: object) -> bool | None:
        return True if len(job.moments(Running)) > attempts else None

    try:
        job.history.feed.wait(look, time.monotonic() + seconds)
    except TimeoutError:
        raise WaitFailed(
            f"{job}: wanted it to be tried again and Running within {seconds:g} s; it is {job.said}, "
            f"its story: {job.story()}"
        ) from None


def _until_it_has_pods(job: Job, seconds: float) -> None:
    feed, uid, wanted = job.history.feed, job.history.uid, {Part.HEAD, Part.WORKERS}
    try:
        feed.wait(lambda _: True if wanted <= left(feed.events, uid) else None, time.monotonic() + seconds)
    except TimeoutError:
        raise WaitFailed(
            f"{job}: wanted head and worker pods within {seconds:g} s; there is {sorted(left(feed.events, uid))}, "
            f"it is {job.said}"
        ) from None


def _within(wait: Callable[[float], bool], end: float) -> bool:
    try:
        return wait(end)
    except TimeoutError:
        return False
