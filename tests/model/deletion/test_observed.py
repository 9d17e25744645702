from __future__ import annotations

from typing import Any

from raykueue.model.deletion.expected import Part, Status
from raykueue.model.deletion.observed import end, left, went
from raykueue.model.events import Event, EventType
from raykueue.model.views import NODE_TYPE

END = 1_000
"""Seconds since the epoch: status.endTime."""


class Story:
    """Events of one job, as a test tells them; `at` is seconds after status.endTime."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._seen: set[str] = set()

    def see(
        self, kind: str, uid: str, owner: str = "", at: float = -5.0, what: EventType | None = None, **fields: Any
    ) -> None:
        metadata: dict[str, Any] = {"name": uid, "uid": uid, **fields.pop("metadata", {})}
        if owner:
            metadata["ownerReferences"] = [{"kind": "", "name": owner, "uid": owner, "controller": True}]
        event_type = what or ("MODIFIED" if uid in self._seen else "ADDED")
        self._seen.add(uid)
        arrived = int((END + at) * 1e9)
        self.events.append(Event(kind, event_type, len(self.events) + 1, arrived, {"metadata": metadata, **fields}))

    def pod(self, uid: str, owner: str, node_type: str = "", at: float = -5.0, what: EventType | None = None) -> None:
        self.see("Pod", uid, owner, at, what, metadata={"labels": {NODE_TYPE: node_type} if node_type else {}})

    def ends(self, deployment: str = "Complete", job: str = "SUCCEEDED", **status: str) -> None:
        about = {"jobDeploymentStatus": deployment, "jobStatus": job, "endTime": "1970-01-01T00:16:40Z", **status}
        self.see("RayJob", "job", at=0.2, status=about)


def running() -> Story:
    story = Story()
    story.see("RayJob", "job", status={"jobDeploymentStatus": "Running"})
    story.see("RayCluster", "cluster", "job")
    story.see("Job", "submitter", "job")
    story.pod("head", "cluster", "head")
    story.pod("worker", "cluster", "worker")
    story.pod("submits", "submitter")
    return story


def test_a_running_job_has_every_part_and_no_end() -> None:
    story = running()
    assert left(story.events, "job") == frozenset(Part)
    assert end(story.events, "job") is None
    assert went(story.events, "job") == {}


def test_the_end_is_the_first_that_the_rayjob_told() -> None:
    story = running()
    story.ends("Failed", "FAILED", reason="AppFailed")
    story.ends("Failed", "FAILED", reason="Other")
    ended = end(story.events, "job")
    assert ended is not None
    assert (ended.status, ended.time) == (Status("Failed", "FAILED", "AppFailed"), END)


def test_what_is_gone_went_when_it_was_first_told_to() -> None:
    story = running()
    story.ends()
    story.see("RayCluster", "cluster", "job", 1.0, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    story.see("RayCluster", "cluster", "job", 4.0, "DELETED")
    story.pod("head", "cluster", "head", 5.0, "DELETED")
    assert left(story.events, "job") == frozenset(Part) - {Part.CLUSTER, Part.HEAD}
    assert went(story.events, "job") == {Part.CLUSTER: 1.0, Part.HEAD: 5.0}


def test_what_still_terminates_is_left() -> None:
    story = running()
    story.ends()
    story.see("RayCluster", "cluster", "job", 1.0, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert Part.CLUSTER in left(story.events, "job")
    assert Part.CLUSTER not in went(story.events, "job")


def test_a_part_is_gone_with_its_last_object() -> None:
    story = running()
    story.pod("worker-2", "cluster", "worker")
    story.ends()
    story.pod("worker", "cluster", "worker", 1.0, "DELETED")
    assert Part.WORKERS in left(story.events, "job")
    story.pod("worker-2", "cluster", "worker", 2.0, "DELETED")
    assert went(story.events, "job") == {Part.WORKERS: 2.0}


def test_the_submitter_is_gone_with_its_job_and_its_pod() -> None:
    story = running()
    story.ends()
    story.see("Job", "submitter", "job", 1.0, "DELETED")
    assert Part.SUBMITTER in left(story.events, "job")
    story.pod("submits", "submitter", at=2.0, what="DELETED")
    assert Part.SUBMITTER not in left(story.events, "job")


def test_what_an_earlier_attempt_had_does_not_count() -> None:
    story = running()
    story.see("RayCluster", "cluster", "job", -3.0, "DELETED")
    story.pod("head", "cluster", "head", -2.0, "DELETED")
    story.see("RayCluster", "again", "job", -1.0)
    story.ends()
    story.see("RayCluster", "again", "job", 1.5, "DELETED")
    assert went(story.events, "job") == {Part.CLUSTER: 1.5}


def test_a_pod_may_be_seen_before_its_cluster() -> None:
    story = Story()
    story.see("RayJob", "job", status={})
    story.pod("head", "cluster", "head")
    story.see("RayCluster", "cluster", "job")
    assert left(story.events, "job") == {Part.RAYJOB, Part.CLUSTER, Part.HEAD}


def test_what_belongs_to_another_job_does_not_count() -> None:
    story = running()
    story.see("RayJob", "other", status={})
    story.see("RayCluster", "others", "other")
    story.pod("stranger", "others", "head")
    story.see("RayJob", "job", what="DELETED", status={})
    assert Part.RAYJOB not in left(story.events, "job")
    assert left(story.events, "other") == {Part.RAYJOB, Part.CLUSTER, Part.HEAD}
