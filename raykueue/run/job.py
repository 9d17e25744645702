"""The handle of one submitted RayJob: what a test does with it, and waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from raykueue.errors import UsageError, WaitFailed
from raykueue.kube.apply import location
from raykueue.kube.client import Api, ApiError
from raykueue.kube.exec import Exec, Ran
from raykueue.kube.refusals import refused
from raykueue.model.deletion.dimensions import Outcome
from raykueue.model.events import Moment, Object
from raykueue.model.views import QUEUE_NAME, controller, deleting, spec, status, uid
from raykueue.ray.control import RayControl
from raykueue.ray.pods import container
from raykueue.run.afterwards import Afterwards, conclude
from raykueue.run.history import History
from raykueue.run.job_view import JobView, conditions_told, pods_told
from raykueue.run.states import Gone, Pending, QuotaReserved, State
from raykueue.run.timeouts import DEFAULT, Timeouts

_OVER = ("SUCCEEDED", "FAILED", "STOPPED")
"""Terminal states of Ray."""


class Job(JobView):
    """A RayJob that a test submitted."""

    def __init__(
        self,
        history: History,
        api: Api,
        ray: RayControl,
        manifest: Object,
        timeouts: Timeouts = DEFAULT,
        run: Exec | None = None,
    ) -> None:
        """`run`: runs commands in its containers; None where these are simulated."""
        super().__init__(history, manifest)
        self._api = api
        self._ray = ray
        self._timeouts = timeouts
        self._run = run

    def until(self, state: State, within: float | None = None) -> Job:
        """Waits until the job is in `state`, at most `within` seconds, and returns the job.

        Raises:
            WaitFailed: it is not reached in time, or can't be reached any more; with what was seen last, and why.
        """
        seconds = self._timeouts.state if within is None else within
        began = time.monotonic()

        def look(_: object) -> bool | None:
            if self.history.is_in(state):
                return True
            blocker = self.history.hopeless(state)
            if blocker is not None:
                raise WaitFailed(self._failed(state, f"it is {blocker}, after which that can't come", began))
            return None

        try:
            self.history.feed.wait(look, began + seconds)
        except TimeoutError:
            raise WaitFailed(self._failed(state, f"not within {seconds:g} s", began)) from None
        return self

    def waits_because(self, within: float | None = None) -> str:
        """Kueue's own words for why it has no quota, once it has said them: it counts a job before it looks at it.

        Raises:
            WaitFailed: it says nothing in time, or has quota, or can't wait for it any more.
        """
        seconds = self._timeouts.state if within is None else within
        began = time.monotonic()

        def look(_: object) -> str | None:
            over = QuotaReserved if self.history.is_in(QuotaReserved) else self.history.hopeless(Pending)
            if over is not None:
                raise WaitFailed(self._failed(Pending, f"it is {over}", began))
            return self.why_pending or None

        try:
            return self.history.feed.wait(look, began + seconds)
        except TimeoutError:
            why = f"not within {seconds:g} s, or not why"
            raise WaitFailed(self._failed(Pending, why, began)) from None

    def until_said(self, reason: str, within: float | None = None) -> Job:
        """Waits until a kubelet has said this of one of the job's containers: ErrImagePull, OOMKilled, …

        Raises:
            WaitFailed: it does not in time, and what it said instead.
        """
        seconds = self._timeouts.state if within is None else within
        began = time.monotonic()
        try:
            self.history.feed.wait(lambda _: True if reason in self.history.reasons() else None, began + seconds)
        except TimeoutError:
            said = ", ".join(sorted(self.history.reasons())) or "nothing"
            raise WaitFailed(
                f"{self}: wanted a container of it to be {reason} within {seconds:g} s; what was said of them: {said}"
            ) from None
        return self

    def finish(self, exit_code: int = 0, *, after_read: bool = False) -> Job:
        """Ends the Ray job: SUCCEEDED for exit code 0, FAILED for any other.

        `after_read`: its submitter ends only once KubeRay has read that.
        """
        read = self._until_ray_is_said_to_be_over if after_read else None
        self._ray.finish(self.namespace, self.name, exit_code, after_read=read)
        return self

    def stop(self) -> Job:
        """Stops the Ray job as `ray job stop` does: STOPPED."""
        self._ray.stop(self.namespace, self.name)
        return self

    @property
    def ray_state(self) -> str:
        """What Ray itself says now: PENDING, RUNNING, SUCCEEDED, FAILED, STOPPED; empty: it knows no such job."""
        return str(self._ray.state(self.namespace, self.name)["status"] or "")

    def run_in_head(self, *command: str) -> Ran:
        """Runs a command in the container of its head that runs Ray, as `kubectl exec` does.

        Raises:
            UsageError: containers are simulated, or the job has not one head pod.
        """
        return self._commands(container(self.head), command)

    def until_head_is_told_to_go(self) -> Job:
        """Waits until somebody has deleted its head pod, which may be there for long after that.

        Raises:
            WaitFailed: nobody does in time.
        """
        return self._until_head("told to go", deleting)

    def until_head_is_replaced(self, before: Object) -> Job:
        """Waits until its one head pod is another than `before`, and runs.

        Raises:
            WaitFailed: it isn't in time.
        """
        return self._until_head(
            "another that runs", lambda head: uid(head) != uid(before) and status(head).get("phase") == "Running"
        )

    def delete(self) -> Job:
        """Deletes the RayJob, as `kubectl delete` does."""
        self._api.delete(self._path)
        return self

    def give_up_clean_up(self) -> Job:
        """Lets a RayCluster go whose clean-up is suspended, as KubeRay tells operators to: takes its finalizer off.

        Raises:
            WaitFailed: it has a RayCluster, and nobody has suspended its clean-up.
        """
        feed = self.history.feed
        for cluster in _controlled(feed.objects("RayCluster"), self.history.uid):
            if not any(spec(job).get("suspend") for job in _controlled(feed.objects("Job"), uid(cluster))):
                raise WaitFailed(f"{self}: expected its RayCluster to be gone, or to wait for a suspended clean-up")
            self._api.merge(location(cluster), {"metadata": {"finalizers": None}})
        return self

    def edit(self, patch: Mapping[str, Any]) -> Job:
        """Changes the RayJob, as `kubectl patch --type merge` does."""
        self._api.merge(self._path, patch)
        return self

    def leave_queue(self) -> bool:
        """Takes the label of its queue off, as `kubectl label` does; False if that is refused."""
        try:
            self.edit({"metadata": {"labels": {QUEUE_NAME: None}}})
        except ApiError as error:
            if not refused(error):
                raise
            return False
        return True

    def suspend(self) -> Job:
        """Makes it give its pods back: by its own `spec.suspend`, or, if it is queued, by deactivating its Workload."""
        return self._pause(True)

    def resume(self) -> Job:
        """Undoes `suspend`."""
        return self._pause(False)

    def end(self, outcome: Outcome) -> Afterwards:
        """Brings the job to this end, waits for it, and tells what comes after it.

        Raises:
            WaitFailed: it does not end.
        """
        return conclude(self, outcome, self._timeouts)

    def placed(self, within: float | None = None) -> Moment:
        """When the last of its head and worker pods got a node.

        Raises:
            WaitFailed: that is not so within `within` seconds from now; with the pods that there are.
        """
        seconds = self._timeouts.state if within is None else within
        try:
            return self.history.feed.wait(lambda _: self.history.placed(), time.monotonic() + seconds)
        except TimeoutError:
            raise WaitFailed(
                f"{self}: wanted its head and workers to have nodes within {seconds:g} s; "
                f"its pods: {pods_told(self.history.pods())}"
            ) from None

    def finds_room(self, within: float) -> bool:
        """Whether all its head and worker pods have nodes at most `within` seconds from now."""
        try:
            self.placed(within)
        except WaitFailed:
            return False
        return True

    def until_nothing_is_left(self, within: float | None = None) -> Job:
        """Waits until the RayJob and everything that descends from it is gone.

        Raises:
            WaitFailed: something stays; it is named.
        """
        seconds = self._timeouts.end if within is None else within
        try:
            self.history.feed.wait(
                # Its deletion must have been seen: just submitted, nothing of it has been seen yet.
                lambda _: True if self.history.is_in(Gone) and not self.history.descendants() else None,
                time.monotonic() + seconds,
            )
        except TimeoutError:
            itself = [] if self.history.is_in(Gone) else [str(self)]
            raise WaitFailed(
                f"{self}: expected nothing to be left within {seconds:g} s of its deletion; "
                f"still there: {', '.join([*itself, *self.left_behind()])}"
            ) from None
        return self

    @property
    def _commands(self) -> Exec:
        if self._run is None:
            raise UsageError(f"{self}: its containers are simulated; mark the test with tier('node')")
        return self._run

    @property
    def _path(self) -> str:
        return f"/apis/ray.io/v1/namespaces/{self.namespace}/rayjobs/{self.name}"

    def _until_head(self, wanted: str, reached: Callable[[Object], bool]) -> Job:
        def look(_: object) -> bool | None:
            heads = self._heads()
            return True if len(heads) == 1 and reached(heads[0]) else None

        try:
            self.history.feed.wait(look, time.monotonic() + self._timeouts.state)
        except TimeoutError:
            raise WaitFailed(
                f"{self}: wanted its head pod to be {wanted} within {self._timeouts.state:g} s; it is {self.said}"
            ) from None
        return self

    def _until_ray_is_said_to_be_over(self) -> None:
        def look(_: object) -> bool | None:
            return True if status(self.history.rayjob() or {}).get("jobStatus") in _OVER else None

        try:
            self.history.feed.wait(look, time.monotonic() + self._timeouts.state)
        except TimeoutError:
            wanted = f"wanted KubeRay to say within {self._timeouts.state:g} s that its Ray job is over"
            raise WaitFailed(f"{self}: {wanted}; it is {self.said}") from None

    def _pause(self, pause: bool) -> Job:
        workload = self.history.workload()
        if workload is None:
            return self.edit({"spec": {"suspend": pause}})
        name = workload["metadata"]["name"]
        # In the newest version that is served, as kubectl does. From 0.15 on Kueue writes v1beta2, and up to 0.16.6 and
        # 0.17.1 a v1beta1 write to such a Workload is refused if it has quota but no priority class (kueue#10594).
        path = f"/apis/{workload['apiVersion']}/namespaces/{self.namespace}/workloads/{name}"
        self._api.merge(path, {"spec": {"active": not pause}})
        return self

    def _failed(self, state: State, why: str, began: float) -> str:
        workload = self.history.workload()
        lines = [
            f"{self}: wanted {state}, {why} (waited {time.monotonic() - began:.1f} s)",
            f"  RayJob:   {self.said}",
            f"  Workload: {conditions_told(workload) if workload is not None else 'none'}",
            f"  pods:     {pods_told(self.history.pods())}",
            f"  story:    {self.story()}",
        ]
        if self.why_pending:
            lines.append(f"  pending because: {self.why_pending}")
        return "\n".join(lines)


def _controlled(objects: Iterable[Object], owner: str) -> list[Object]:
    """Those whose controller has that UID."""
    return [one for one in objects if (by := controller(one)) is not None and by.uid == owner]
