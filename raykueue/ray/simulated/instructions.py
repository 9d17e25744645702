"""What a test asks of the simulated Ray, RayJob by RayJob. Pure, as the simulation is that it steers."""

from __future__ import annotations

from typing import Any

from raykueue.ray.simulated.jobs import Ending, JobStatus
from raykueue.ray.simulated.simulation import EndSubmitter, Plan, Simulation


class WrongState(Exception):
    """An instruction does not fit the state that its RayJob is in."""


class Instructions:
    """Steers one simulation. An instruction may come before its RayJob was seen; what it plans is forgotten with it."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def finish(self, namespace: str, name: str, ending: Ending, when_running: bool = False) -> list[EndSubmitter]:
        """Ends the RayJob's running Ray job; with `when_running`, if it doesn't run yet, as soon as it does.

        Raises:
            WrongState: no Ray job of it runs.
        """
        record, job = self._simulation.records.get((namespace, name)), self._simulation.current(namespace, name)
        endable = (JobStatus.RUNNING, JobStatus.PENDING) if ending.stopped else (JobStatus.RUNNING,)
        if record is not None and job is not None and not job.lost and job.status in endable:
            job.end(ending, self._simulation.now())
            return self._simulation.advance(record)
        if not when_running:
            raise WrongState(f"RayJob {namespace}/{name} has no running Ray job to end: {self.tell(namespace, name)}")
        self._simulation.plans[namespace, name].ending = ending
        return []

    def hold(self, namespace: str, name: str) -> None:
        """Ray jobs of this RayJob stay PENDING from now on.

        Raises:
            WrongState: its Ray job has left PENDING already.
        """
        job = self._simulation.current(namespace, name)
        if job is not None and not job.lost and job.status is not JobStatus.PENDING:
            raise WrongState(f"RayJob {namespace}/{name} can't be held: {self.tell(namespace, name)}")
        self._simulation.plans[namespace, name].held = True

    def release(self, namespace: str, name: str) -> list[EndSubmitter]:
        """Undoes `hold`: a PENDING job runs.

        Raises:
            WrongState: it isn't held.
        """
        plan = self._simulation.plans.get((namespace, name))
        if plan is None or not plan.held:
            raise WrongState(f"RayJob {namespace}/{name} is not held: {self.tell(namespace, name)}")
        plan.held = False
        record = self._simulation.records.get((namespace, name))
        return self._simulation.advance(record) if record is not None else []

    def fail_submission(
        self, namespace: str, name: str, exit_code: int, attempts: int | None = None
    ) -> list[EndSubmitter]:
        """Lets the next `attempts` submitters (None: every one) end without having submitted anything.

        Raises:
            WrongState: the Ray job is submitted already, or the RayJob has no submitter.
        """
        record, job = self._simulation.records.get((namespace, name)), self._simulation.current(namespace, name)
        if record is not None and not record.view.submits_by_pod:
            raise WrongState(f"RayJob {namespace}/{name} has no submitter in {record.view.mode}")
        if job is not None and not job.lost:
            raise WrongState(f"RayJob {namespace}/{name} is submitted already: {self.tell(namespace, name)}")
        plan = self._simulation.plans[namespace, name]
        plan.failing, plan.failures_left = exit_code, attempts
        return self._simulation.advance(record) if record is not None else []

    def state(self, namespace: str, name: str) -> dict[str, Any]:
        """What is known of a RayJob's Ray job, as plain JSON: of its current attempt, or of its last between two.

        Raises:
            WrongState: the RayJob is unknown.
        """
        record = self._simulation.records.get((namespace, name))
        if record is None:
            raise WrongState(f"RayJob {namespace}/{name} is unknown: {self.tell(namespace, name)}")
        current = self._simulation.current(namespace, name)
        job = current if current is not None or not record.runs or record.view.submission_id else record.runs[-1]
        head = self._simulation.heads.get((namespace, record.view.cluster))
        plan = self._simulation.plans.get((namespace, name), Plan())
        return {
            "namespace": namespace,
            "name": name,
            "mode": record.view.mode,
            "submission_id": job.submission_id if job is not None else record.view.submission_id,
            "cluster": record.view.cluster,
            "head": head.view.pod if head is not None else None,
            "status": str(job.status) if job is not None else None,
            "message": job.message if job is not None else None,
            "lost": job is not None and job.lost,
            "times": job.times() if job is not None else {},
            "submitter": job.submitter if job is not None else "",
            "held": plan.held,
            "planned": str(plan.ending.status) if plan.ending is not None else None,
            "runs": len(record.runs),
        }

    def times(self) -> list[dict[str, Any]]:
        """Times of every job of every RayJob that still exists."""
        return [
            {"namespace": namespace, "name": name, "submission_id": job.submission_id, "status": str(job.status)}
            | job.times()
            for (namespace, name), record in self._simulation.records.items()
            for job in record.runs
        ]

    def tell(self, namespace: str, name: str) -> str:
        """One line for an error message: where a RayJob's Ray job stands."""
        record, job = self._simulation.records.get((namespace, name)), self._simulation.current(namespace, name)
        if record is None:
            return "no such RayJob is known (not created yet, or deleted)"
        view = record.view
        if job is not None:
            return f"Ray job {job.submission_id} is {job.status}" + (", its head pod is gone" if job.lost else "")
        if not view.submission_id and not view.cluster:
            return f"nothing was started for it yet (jobDeploymentStatus {view.deployment_status or 'empty'})"
        if (namespace, view.cluster) not in self._simulation.heads:
            return f"the head pod of its RayCluster {view.cluster} does not run"
        return f"nothing has submitted Ray job {view.submission_id or '(without an id)'} yet ({view.mode})"

    def submit(self, namespace: str, name: str, submission_id: str) -> list[EndSubmitter]:
        """Submits a Ray job to the RayJob's cluster, as the user of an interactive one does before setting its jobId.

        Raises:
            WrongState: no head of it runs, or it has a job of that id.
        """
        record = self._simulation.records.get((namespace, name))
        if record is None or not record.view.cluster:
            raise WrongState(f"RayJob {namespace}/{name} has no cluster to submit to: {self.tell(namespace, name)}")
        request = {"submission_id": submission_id, "entrypoint": record.view.entrypoint}
        try:
            _, ends = self._simulation.submit(namespace, f"{record.view.cluster}-head-svc", request)
        except (LookupError, ValueError) as error:
            raise WrongState(f"RayJob {namespace}/{name}: {submission_id} can't be submitted: {error!r}") from error
        return ends
