"""When a Ray job exists, and what becomes of it. Pure: watch events, calls and instructions in, submitters to end out.

As in a real cluster a Ray job belongs to one head pod: it is unknown before something submits it there, and unknown
again when that pod is gone, even if another head takes its place. Every method that can end a submitter returns
what there is to end; the caller does it, and says when it is done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from raykueue.ray.simulated.jobs import Ending, Job, JobStatus, submitter_exit
from raykueue.ray.simulated.objects import (
    INTERACTIVE_MODE,
    K8S_JOB_MODE,
    SIDECAR_MODE,
    HeadView,
    RayJobView,
    Submitter,
)


@dataclass(frozen=True, slots=True)
class EndSubmitter:
    """A submitter has to end now."""

    namespace: str
    name: str
    """Of the RayJob."""
    submitter: Submitter
    exit_code: int
    job: Job | None
    """None: it ends without having submitted."""
    after_read: bool = False


@dataclass(slots=True)
class Head:
    """A running head pod and the jobs it knows."""

    view: HeadView
    jobs: dict[str, Job] = field(default_factory=dict)


@dataclass(slots=True)
class Plan:
    """What was asked for a RayJob in advance."""

    held: bool = False
    ending: Ending | None = None
    failing: int | None = None
    """The exit code of submitters that fail to submit."""
    failures_left: int | None = None
    """None: every one."""


@dataclass(slots=True)
class Record:
    """A RayJob, its attempts, and who submitted them."""

    view: RayJobView
    runs: list[Job] = field(default_factory=list)
    submitted: dict[tuple[str, str], Job] = field(default_factory=dict)
    """Which job each submitter submitted or follows."""
    ended: set[tuple[str, str]] = field(default_factory=set)
    """Submitters that were told to end."""


class Simulation:
    """All heads and their jobs. `now` gives milliseconds since the epoch."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.now = now
        self.records: dict[tuple[str, str], Record] = {}
        self.plans: dict[tuple[str, str], Plan] = defaultdict(Plan)
        self.heads: dict[tuple[str, str], Head] = {}
        self._submitters: dict[tuple[str, str], dict[str, Submitter]] = defaultdict(dict)
        self._of_cluster: dict[tuple[str, str], set[str]] = defaultdict(set)

    # --- what the API server says ---

    def rayjob_seen(self, view: RayJobView) -> list[EndSubmitter]:
        """A RayJob is there, or has changed."""
        record = self.records.get((view.namespace, view.name))
        if record is not None and record.view.uid != view.uid:
            self.rayjob_gone(view.namespace, view.name)
            record = None
        if record is None:
            record = self.records[view.namespace, view.name] = Record(view)
        elif record.view == view:
            return []
        self._unlink(record)
        record.view = view
        if view.cluster:
            self._of_cluster[view.namespace, view.cluster].add(view.name)
        return self.advance(record)

    def rayjob_gone(self, namespace: str, name: str) -> None:
        """A RayJob was deleted: all that is known of it is forgotten."""
        record = self.records.pop((namespace, name), None)
        if record is not None:
            self._unlink(record)
            self.plans.pop((namespace, name), None)

    def head_seen(self, view: HeadView) -> list[EndSubmitter]:
        """A head pod runs."""
        key = (view.namespace, view.cluster)
        head = self.heads.get(key)
        if head is not None and head.view.uid == view.uid:
            head.view = view
        else:
            if head is not None:
                _lose(head)
            self.heads[key] = Head(view)
        return self._advance_cluster(*key)

    def head_gone(self, namespace: str, cluster: str, uid: str) -> list[EndSubmitter]:
        """A head pod has ended or was deleted: its jobs are unknown from now on."""
        head = self.heads.get((namespace, cluster))
        if head is None or head.view.uid != uid:
            return []
        _lose(head)
        del self.heads[namespace, cluster]
        return self._advance_cluster(namespace, cluster)

    def submitter_seen(self, job_name: str, submitter: Submitter) -> list[EndSubmitter]:
        """A submitter pod of the batch Job `job_name` runs."""
        self._submitters[submitter.namespace, job_name][submitter.uid] = submitter
        record = self.records.get((submitter.namespace, job_name))
        return self.advance(record) if record is not None else []

    def submitter_gone(self, namespace: str, job_name: str, uid: str) -> None:
        """A submitter pod has ended, is being deleted, or is gone."""
        pods = self._submitters.get((namespace, job_name))
        if pods is not None:
            pods.pop(uid, None)
            if not pods:
                del self._submitters[namespace, job_name]

    def submitter_ended(self, end: EndSubmitter, done: bool) -> None:
        """The end that was asked for is done; or it failed, and may be asked for again."""
        record = self.records.get((end.namespace, end.name))
        if done and end.job is not None and end.job.submitter_ended is None:
            end.job.submitter_ended = self.now()
        elif not done and record is not None:
            record.ended.discard(end.submitter.key)

    # --- what is asked of a head's dashboard ---

    def find(self, namespace: str, service: str, submission_id: str) -> Job | None:
        """The job that the head behind a Service knows."""
        head = self.heads.get((namespace, self._cluster_of(namespace, service)))
        return head.jobs.get(submission_id) if head is not None else None

    def jobs_of(self, namespace: str, service: str) -> list[Job] | None:
        """All jobs that the head behind a Service knows; None: no head runs there."""
        head = self.heads.get((namespace, self._cluster_of(namespace, service)))
        return list(head.jobs.values()) if head is not None else None

    def submit(self, namespace: str, service: str, request: Mapping[str, Any]) -> tuple[Job, list[EndSubmitter]]:
        """`POST /api/jobs/`.

        Raises:
            LookupError: no head runs behind that Service.
            ValueError: the head has a job of that submission id already.
        """
        cluster = self._cluster_of(namespace, service)
        head = self.heads.get((namespace, cluster))
        if head is None:
            raise LookupError(f"no head pod runs behind Service {namespace}/{service}")
        submission_id = str(request["submission_id"])
        if submission_id in head.jobs:
            raise ValueError(submission_id)
        job = self._new_job(head, submission_id, str(request.get("entrypoint", "")))
        job.metadata = request.get("metadata") or {}
        job.runtime_env = request.get("runtime_env") or {}
        owners = [self.records[namespace, name] for name in self._of_cluster.get((namespace, cluster), ())]
        for record in owners:
            # An interactive job learns its id only after its user has submitted it.
            if record.view.mode == INTERACTIVE_MODE and not record.view.submission_id:
                record.runs.append(job)
        ends = self._advance_cluster(namespace, cluster)
        if not any(job in record.runs for record in owners):
            job.run(self.now())
        return job, ends

    def stopped(self, job: Job) -> tuple[bool, list[EndSubmitter]]:
        """`POST /api/jobs/<id>/stop`: whether the job was running, as Ray answers."""
        if job.status.terminal:
            return False, []
        job.end(Ending(stopped=True), self.now())
        return True, self._advance_cluster(job.namespace, job.cluster)

    def was_read(self, job: Job) -> None:
        """A dashboard call has answered the job's state."""
        if job.status.terminal and job.read is None:
            job.read = self.now()

    # --- what instructions build on ---

    def current(self, namespace: str, name: str) -> Job | None:
        """The job of the RayJob's current attempt; None while there is none, or it has not submitted."""
        record = self.records.get((namespace, name))
        if record is None or not record.runs:
            return None
        job, view = record.runs[-1], record.view
        unnamed = view.mode == INTERACTIVE_MODE and not view.submission_id
        return job if job.cluster == view.cluster and (unnamed or job.submission_id == view.submission_id) else None

    def advance(self, record: Record) -> list[EndSubmitter]:
        """Brings one RayJob's Ray job to where its objects and plans say."""
        view, plan = record.view, self.plans.get((record.view.namespace, record.view.name), Plan())
        head = self.heads.get((view.namespace, view.cluster))
        submitter = self._submitter_of(record, head)
        ends: list[EndSubmitter] = []
        job = head.jobs.get(view.submission_id) if head is not None else None
        if submitter is not None and submitter.key not in record.submitted and head is not None:
            if job is None and submitter.key not in record.ended:
                if plan.failing is not None and plan.failures_left != 0:
                    plan.failures_left = None if plan.failures_left is None else plan.failures_left - 1
                    return [self._end(record, submitter, plan.failing, None)]
                job = self._new_job(head, view.submission_id, view.entrypoint)
                job.metadata = view.metadata
            if job is not None:
                # The second submitter pod of a Job finds the job there and follows its logs.
                job.submitter = submitter.pod
                record.submitted[submitter.key] = job
        if job is not None and job not in record.runs:
            record.runs.append(job)
        current = self.current(view.namespace, view.name)
        if current is not None and not current.lost:
            self._apply(plan, current)
        followed = record.submitted.get(submitter.key) if submitter is not None else None
        if submitter is not None and followed is not None and submitter.key not in record.ended:
            if followed.ending is not None:
                code = submitter_exit(followed.ending, blocking=view.mode == SIDECAR_MODE)
                ends.append(self._end(record, submitter, code, followed))
            elif followed.lost:
                # Its connection to the dashboard breaks: `ray job logs` raises.
                ends.append(self._end(record, submitter, 1, followed))
        return ends

    # --- inside ---

    def _apply(self, plan: Plan, job: Job) -> None:
        if job.status is JobStatus.PENDING and not plan.held:
            job.run(self.now())
        if job.status is JobStatus.RUNNING and plan.ending is not None:
            job.end(plan.ending, self.now())
            plan.ending = None

    def _end(self, record: Record, submitter: Submitter, exit_code: int, job: Job | None) -> EndSubmitter:
        record.ended.add(submitter.key)
        after_read = job is not None and job.ending is not None and job.ending.after_read
        return EndSubmitter(record.view.namespace, record.view.name, submitter, exit_code, job, after_read)

    def _submitter_of(self, record: Record, head: Head | None) -> Submitter | None:
        view = record.view
        if not view.submission_id:
            return None
        if view.mode == SIDECAR_MODE:
            return head.view.sidecar if head is not None else None
        if view.mode != K8S_JOB_MODE:
            return None
        pods = self._submitters.get((view.namespace, view.name), {})
        # A pod of an earlier attempt may still be there: its own id tells.
        current = [pod for pod in pods.values() if pod.submission_id in ("", view.submission_id)]
        return current[-1] if current else None

    def _new_job(self, head: Head, submission_id: str, entrypoint: str) -> Job:
        job = Job(head.view.namespace, head.view.cluster, submission_id, entrypoint, submitted=self.now())
        head.jobs[submission_id] = job
        return job

    def _cluster_of(self, namespace: str, service: str) -> str:
        """The RayCluster behind a head Service: `<cluster>-head-svc` (util.go:319@v1.6.2), or named by its user."""
        cluster = service.removesuffix("-head-svc")
        if (namespace, cluster) in self.heads:
            return cluster
        for (of_namespace, of_cluster), names in self._of_cluster.items():
            if of_namespace == namespace and any(
                self.records[namespace, name].view.service == service for name in names
            ):
                return of_cluster
        return cluster

    def _advance_cluster(self, namespace: str, cluster: str) -> list[EndSubmitter]:
        names = sorted(self._of_cluster.get((namespace, cluster), ()))
        return [end for name in names for end in self.advance(self.records[namespace, name])]

    def _unlink(self, record: Record) -> None:
        key = (record.view.namespace, record.view.cluster)
        names = self._of_cluster.get(key)
        if names is not None:
            names.discard(record.view.name)
            if not names:
                del self._of_cluster[key]


def _lose(head: Head) -> None:
    for job in head.jobs.values():
        job.lost = True
