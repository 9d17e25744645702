"""One test on a live cluster: its own names, queue and jobs; its end, and the judgement of what happened meanwhile."""

from __future__ import annotations

import contextlib
import copy
import threading
import time
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from raykueue.audit.explanations import Expect
from raykueue.audit.handovers import HandOver
from raykueue.audit.judge import Judgement, judge
from raykueue.audit.thresholds import Thresholds
from raykueue.errors import ProductDefect, RecorderError, UsageError, WaitFailed
from raykueue.kube.apply import create, location
from raykueue.kube.client import ApiError
from raykueue.kube.refusals import refused
from raykueue.model.deletion.suspended_clean_up import suspended_clean_up
from raykueue.model.deletion.unmatched import unmatched
from raykueue.model.views import uid
from raykueue.ray.manifests import Replaced
from raykueue.run.explanations import allowances, known_issues
from raykueue.run.feed import Feed
from raykueue.run.history import History
from raykueue.run.job import Job
from raykueue.run.manifests import load, load_one
from raykueue.run.naming import PRIORITY_LABEL, SCOPE_LABEL, Names
from raykueue.run.queue import Queue
from raykueue.run.recorder.scopes import ScopeNames
from raykueue.run.refusals import Refused
from raykueue.run.session import Lease, Session
from raykueue.run.stops import stop_slowly
from raykueue.run.timeouts import BY_TIER, Timeouts


class Trial:
    """What one test has of the cluster."""

    def __init__(self, session: Session, lease: Lease, test: str, timeouts: Timeouts | None = None) -> None:
        self.session = session
        self.lease = lease
        self.test = test
        self.names = Names(uuid.uuid4().hex[:6])
        self.jobs: list[Job] = []
        self.handovers: tuple[HandOver, ...] = ()
        """As of the last judgement."""
        self._timeouts = timeouts or BY_TIER[session.tier]
        self._replaced: dict[Replaced, None] = {}
        self._created: list[str] = []
        self._expects: list[Expect] = []
        self._longest_stop = 0.0
        self._feed: Feed | None = None

    @property
    def feed(self) -> Feed:
        """Events of this test's own objects."""
        if self._feed is None:
            raise UsageError("this test has no queue yet: ask for the `queue` fixture")
        return self._feed

    @property
    def opened(self) -> bool:
        """Whether there is anything to end and to judge."""
        return self._feed is not None

    @property
    def replaced(self) -> tuple[Replaced, ...]:
        """What its RayJobs say differently from their manifests, each once."""
        return tuple(self._replaced)

    def queue(self, manifest: str) -> Queue:
        """Makes everything in a manifest of queues, under this scope's names, and waits until Kueue would admit."""
        documents = [self.names.rename(document) for document in load(manifest)]
        local = next((document for document in documents if document["kind"] == "LocalQueue"), None)
        if local is None:
            raise UsageError(f"manifest {manifest} has no LocalQueue, so no job could be submitted to it")
        self._open()
        namespace = {"metadata": {"name": self.names.namespace, "labels": {SCOPE_LABEL: self.names.scope}}}
        self._create({"apiVersion": "v1", "kind": "Namespace", **namespace})
        for document in documents:
            self._create(document)
            if document["kind"] == "AdmissionCheck":
                self._answer_for(document)
        name, cluster_queue = local["metadata"]["name"], local["spec"]["clusterQueue"]
        return Queue(self.feed, cluster_queue, name, self.names.namespace, self._timeouts).until_active()

    def submit(
        self,
        manifest: str | Mapping[str, Any],
        *,
        name: str | None = None,
        priority: str | None = None,
        stops_after: float | None = None,
        later_than: Job | None = None,
    ) -> Job:
        """Creates a RayJob from a manifest, as `kubectl create` does.

        Args:
            manifest: a file in `manifests/`, or a RayJob.
            name: instead of the manifest's own; "-" and five characters follow, as with generateName.
            priority: the WorkloadPriorityClass, by the name that the manifest of queues gives it.
            stops_after: seconds that its pods' containers take to stop once they are told to.
            later_than: creates it in a later second than this job and its Workload, if that is there already, since
                creation times have whole seconds only, and Kueue orders Workloads of equal priority by them.

        Raises:
            Refused: the API server or a webhook does not take it.
        """
        feed = self.feed
        body = load_one(manifest, "RayJob") if isinstance(manifest, str) else copy.deepcopy(dict(manifest))
        labels = body["metadata"].setdefault("labels", {})
        if priority is not None:
            labels[PRIORITY_LABEL] = priority
        if name is not None:
            body["metadata"].pop("name", None)
            body["metadata"]["generateName"] = f"{name}-"
        if stops_after is not None:
            stop_slowly(body, stops_after, self.session.tier)
            self._longest_stop = max(self._longest_stop, stops_after)
        if later_than is not None:
            _wait_for_a_later_second(later_than)
        prepared = self.session.ray.prepared(self.names.rename(body))
        self._replaced |= dict.fromkeys(prepared.replaced)
        try:
            stored = create(self.session.api, prepared.body)
        except ApiError as error:
            if refused(error):
                raise Refused(error) from error
            raise
        history = History(feed, self.names.namespace, stored["metadata"]["name"], uid(stored))
        run = self.session.run if self.session.tier == "node" else None
        job = Job(history, self.session.api, self.session.ray, stored, self._timeouts, run)
        self.jobs.append(job)
        return job

    def let_through(self, job: Job) -> None:
        """Passes every admission check of the job's Workload, as their controllers would.

        Raises:
            WaitFailed: Kueue asks for no check in time.
        """

        def asked(_: Feed) -> Mapping[str, Any] | None:
            found = job.history.workload()
            return found if found is not None and found.get("status", {}).get("admissionChecks") else None

        try:
            workload = self.feed.wait(asked, time.monotonic() + self._timeouts.state)
        except TimeoutError:
            raise WaitFailed(f"{job}: Kueue asks for no admission check; has its queue one?") from None
        now = {"state": "Ready", "message": "passed by the test", "lastTransitionTime": _now()}
        checks = [{**check, **now} for check in workload["status"]["admissionChecks"]]
        name = workload["metadata"]["name"]
        path = f"/apis/{workload['apiVersion']}/namespaces/{self.names.namespace}/workloads/{name}/status"
        self.session.api.merge(path, {"status": {"admissionChecks": checks}})

    def end_jobs(self) -> None:
        """Deletes every job of the test, and waits until nothing is left of them.

        Raises:
            ProductDefect: something stays, or the test made RayJobs that it did not submit.
        """
        feed = self.feed
        self.session.recording.barrier()  # a job that was made a moment ago may not have arrived yet
        mine = {job.history.uid for job in self.jobs}
        strays = [one for one in feed.objects("RayJob") if uid(one) not in mine]
        for stray in strays:
            path = f"/apis/ray.io/v1/namespaces/{self.names.namespace}/rayjobs/{stray['metadata']['name']}"
            self.session.api.delete(path)
        for job in reversed(self.jobs):  # those that wait first, or Kueue admits them as the quota becomes free
            job.delete()
        stuck = []
        for job in self.jobs:
            try:
                job.until_nothing_is_left()
            except WaitFailed as error:
                stuck.append(str(error))
        if stuck:
            raise ProductDefect("\n".join(stuck))
        if strays:
            names = ", ".join(stray["metadata"]["name"] for stray in strays)
            raise UsageError(f"the test left RayJob {names} behind, which `submit` does not know; it is deleted now")

    def expect(self, expected: Expect) -> None:
        """The test forces this finding: it must appear, and is no failure."""
        self._expects.append(expected)

    def judge(self) -> Judgement:
        """Waits until nothing can fire any more, and explains what did.

        Raises:
            RecorderError: the record has a hole, or the test could not be judged in time.
        """
        answer = self.session.recording.judge(self.names.scope, self._timeouts.judge)
        self.handovers = answer.handovers
        if answer.problems:
            raise RecorderError("; ".join(answer.problems))
        if answer.obligations:
            waiting = "; ".join(f"{one.rule}: {one.text}" for one in answer.obligations)
            raise RecorderError(f"not judged within {self._timeouts.judge:g} s, still waiting: {waiting}")
        # Simulated nodes let a pod go at once, unless the test says how long its containers take to stop.
        grace = {"g": self._longest_stop} if self.session.tier == "control-plane" else {}
        looks = (unmatched, suspended_clean_up)
        left_behind = [look(self.feed.events, job.history.uid) for job in self.jobs for look in looks]
        return judge(
            [*answer.findings, *(found for found in left_behind if found is not None)],
            self._expects,
            known_issues(),
            allowances(),
            test=self.test,
            pair=self.session.pair,
            thresholds=Thresholds(),
            circumstances=answer.circumstances,
            names=grace,
        )

    def save_journal(self, path: Path) -> None:
        """Saves what was recorded of this test."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.session.recording.slice(self.names.scope, path)

    def close(self) -> None:
        """Removes what the test made, newest first; Kubernetes finishes that by itself.

        Raises:
            InfraError: something could not be removed; the rest is.
        """
        with contextlib.ExitStack() as stack:  # last in, first out
            if self._feed is not None:
                stack.callback(self.session.recording.close, self.names.scope)
            for path in self._created:
                stack.callback(self.session.api.delete, path)
            self._feed = None
            self._created = []

    def _open(self) -> None:
        if self._feed is not None:
            raise UsageError("a test makes its queues once, from one manifest; put them all into it")
        self._feed = self.session.recording.open(
            ScopeNames(
                name=self.names.scope,
                namespaces=(self.names.namespace,),
                cluster_queues=self.names.of("ClusterQueue"),
                flavors=self.names.of("ResourceFlavor"),
                cohorts=self.names.of("Cohort"),
                priority_classes=self.names.of("WorkloadPriorityClass"),
                admission_checks=self.names.of("AdmissionCheck"),
                nodes=self.names.of("Node"),
            )
        )

    def _answer_for(self, check: Mapping[str, Any]) -> None:
        """Plays the controller of an AdmissionCheck: Kueue admits nothing to a queue whose check nobody answers for."""
        active = {"type": "Active", "status": "True", "reason": "Played", "message": "played by the test"}
        status = {"status": {"conditions": [{**active, "lastTransitionTime": _now()}]}}
        self.session.api.merge(f"{location(check)}/status", status)

    def _create(self, manifest: Mapping[str, Any]) -> None:
        create(self.session.api, manifest)
        self._created.append(location(manifest))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _wait_for_a_later_second(job: Job) -> None:
    # Kueue compares Workloads, and a job's may have been created in the second after the job's own.
    made = [one["metadata"]["creationTimestamp"] for one in (job.manifest, job.history.workload()) if one is not None]
    created = datetime.fromisoformat(max(made)).timestamp()
    # Nothing announces that a second has passed, and the API server's clock is this machine's.
    threading.Event().wait(max(0.0, created + 1.02 - time.time()))
