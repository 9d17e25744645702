"""Which jobs are there, and which of them Kueue manages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from raykueue.audit.books.changes import JobChange
from raykueue.audit.books.entities import Job
from raykueue.audit.books.identities import Identities
from raykueue.model import views
from raykueue.model.events import Moment, Object
from raykueue.model.findings import Ref

_MULTIKUEUE = "kueue.x-k8s.io/multikueue"


class JobBook:
    """Jobs by UID, from the first sign of them, be it a pod, a Workload or the job itself."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._by_namespace: dict[str, set[str]] = defaultdict(set)

    def get(self, uid: str) -> Job | None:
        return self._jobs.get(uid)

    def all(self) -> Iterator[Job]:
        return iter(self._jobs.values())

    def ensure(self, ref: Ref) -> Job:
        """The job of that UID, made known if it wasn't."""
        job = self._jobs.get(ref.uid)
        if job is None:
            job = self._jobs[ref.uid] = Job(ref)
            self._by_namespace[ref.namespace].add(ref.uid)
        return job

    def manage(self, job: Job, moment: Moment) -> list[JobChange]:
        """Kueue manages the job from now on."""
        if job.managed:
            return []
        job.managed = True
        return [JobChange(job, moment)]

    def apply(self, ref: Ref, obj: Object, moment: Moment, identities: Identities, *, gone: bool) -> list[JobChange]:
        """A RayJob, RayCluster or RayService was written.

        A RayCluster is a job of its own unless a RayJob or RayService is above it: KubeRay copies the queue label of
        a RayJob to its RayCluster (ray-operator/controllers/ray/rayjob_controller.go:970-977@v1.6.2).
        """
        if ref.uid not in self._jobs and identities.is_child(ref.uid):
            return []
        job = self.ensure(ref)
        job.object = None if gone else obj
        job.ttl = float(views.spec(obj).get("ttlSecondsAfterFinished") or 0)
        skipped = job.skipped
        job.skipped = bool(views.spec(obj).get("clusterSelector")) or views.spec(obj).get("managedBy") == _MULTIKUEUE
        changes = self.manage(job, moment) if views.queue_name(obj) else []
        return changes or ([JobChange(job, moment)] if skipped != job.skipped else [])

    def forget(self, namespace: str) -> None:
        for uid in self._by_namespace.pop(namespace, ()):
            del self._jobs[uid]
