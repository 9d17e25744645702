"""Records and reports that the tests of raykueue.report share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raykueue.audit.handovers import Donor, HandOver
from raykueue.model.events import Moment
from raykueue.model.findings import Finding, Ref, Verdict
from raykueue.report.record import JudgedFinding, Record, Scope
from raykueue.report.run_info import LoadedReport, RunFacts, RunInfo
from raykueue.report.verdict import counts, exit_code

PAIR = {"kueue": "0.19.2", "kuberay": "1.6.2", "kubernetes": "1.34.4"}
STARTED = "2026-11-05T10:15:02.000Z"
FACTS = RunFacts(
    tier="control-plane",
    profile="core",
    versions={"etcd": "3.6.5", "kwok": "0.8.0", "ray": "simulated"},
    timings={"cluster start": 9.14, "controllers": 5.9, "cluster stop": 0.8},
    known_links={"KR-4512": "https://github.com/ray-project/kuberay/issues/4512"},
    lock_digest="5f" * 32,
    suite_version="0.1.0",
    commit="b7ae8e3c0ffee" + "0" * 27,
)
ABSENCES = ("needs:legacy-deletion-policy",)
"""What `PAIR` really does not have."""


def finding(explained_by: str = "", **changes: Any) -> JudgedFinding:
    """Two worker pods that outlived their hold."""
    values: dict[str, Any] = {
        "id": "no-survivors-1f3a",
        "rule": "no-survivors",
        "klass": "hazard",
        "cause": "job-failed",
        "text": "2 pods of RayJob t-7/train lived 1840 to 1871 ms after its hold had ended: 2 CPU and 4 GiB unpaid",
        "objects": (Ref("RayJob", "t-7", "train", "u-1"), Ref("Pod", "t-7", "train-worker-x", "u-2")),
        "begin": Moment(1204, 1_762_337_702_000_000_000),
        "end": Moment(1377, 1_762_337_703_871_000_000),
        "namespace": "t-7",
        "cluster_queue": "cq-t-7",
        "payer": "u-3#1",
        "peak": {"cpu": 2000, "memory": 4 * 2**30},
        "resource_seconds": {"cpu": 3680.0, "memory": 7.9e9},
        "seconds": (1.84, 1.871),
    }
    return JudgedFinding(Finding(**{**values, **changes}), explained_by)


def handover(**changes: Any) -> HandOver:
    """Two seconds of two jobs on the quota of one."""
    train, urgent = Ref("RayJob", "t-7", "train", "u-1"), Ref("RayJob", "t-7", "urgent", "u-5")
    start = 1_762_337_702_000_000_000
    values: dict[str, Any] = {
        "cluster_queue": "cq-t-7",
        "job": urgent,
        "workload": Ref("Workload", "t-7", "rayjob-urgent", "u-6"),
        "payer": "u-6#1",
        "donors": (
            Donor(
                train,
                Ref("Workload", "t-7", "rayjob-train", "u-3"),
                "u-3#1",
                Moment(1204, start),
                Moment(1377, start + 3_000_000_000),
            ),
        ),
        "debt": {"cpu": 2000},
        "gained": Moment(1210, start + 110_000_000),
        "first_pod": Moment(1300, start + 1_000_000_000),
        "peak": {"cpu": 1500},
        "resource_seconds": {"cpu": 3000.0},
        "overlap_ms": 2000.0,
        "bound_ms": 1900.0,
        "running_ms": 1500.0,
    }
    return HandOver(**{**values, **changes})


def record(test: str = "suites/test_queueing.py::test_waits", **changes: Any) -> Record:
    """A test that passed; if it is not applicable, because of something that `PAIR` does not have."""
    values: dict[str, Any] = {
        "id": test,
        "suite": "queueing",
        "sentence": "A job waits while its queue is full.",
        "verdict": Verdict.PASS,
        "started": STARTED,
        "phases": {"setup": 0.2, "call": 1.4, "judge": 0.31, "teardown": 0.1},
        "worker": "gw0",
        "absences": ABSENCES if changes.get("verdict") is Verdict.NOT_APPLICABLE else (),
    }
    return Record(**{**values, **changes})


def full_record() -> Record:
    """A record with every field set."""
    return record(
        verdict=Verdict.FAIL,
        reason="2 pods outlived the hold",
        absences=ABSENCES,
        failure="Traceback …\nFindingError: 2 pods outlived the hold",
        findings=(finding(), finding("expects", id="f2", end=None), finding(id="f3", part_of="f2")),
        handovers=(handover(), handover(first_pod=None, peak={}, overlap_ms=0.0)),
        scope=Scope("t-7", {"team-a": "team-a-x7"}),
        notes=("The guide's queue is too small for its own example.",),
        journal="journals/test_waits.jsonl.gz",
        reproduce="pytest 'suites/test_queueing.py::test_waits' --kueue 0.19.2",
        moments={"admitted": 12.5},
    )


def report(records: Sequence[Record], *, interrupted: bool = False, facts: RunFacts = FACTS) -> LoadedReport:
    """A finished report that was never on a disk."""
    run = RunInfo(
        pair=PAIR,
        backend="embedded",
        started=STARTED,
        finished="2026-11-05T10:16:10.500Z",
        facts=facts,
        planned=sum(not each.of_run for each in records),
        counts={verdict.value: number for verdict, number in counts(records).items()},
        interrupted=interrupted,
        exit_code=exit_code(records, interrupted=interrupted),
    )
    return LoadedReport(Path("reports/20261105T101502Z-kueue0.19.2-kuberay1.6.2-embedded"), run, tuple(records))


def mixed_records() -> list[Record]:
    """One of each kind that a release manager meets."""
    rows = "suites/test_deletion_policy.py::test_rule"
    return [
        record(),
        record(
            "suites/test_queueing.py::test_order",
            sentence="Jobs of one queue are admitted in the order of their priority, then of their creation.",
            phases={"setup": 0.2, "call": 2.9, "judge": 0.4, "teardown": 0.1},
            worker="gw1",
        ),
        record(
            "suites/test_preemption.py::test_quota_comes_back",
            suite="preemption",
            sentence="A preempted job has given its quota back, and its pods are gone, before the heir's pods start.",
            phases={"setup": 0.2, "call": 3.1, "judge": 1.2, "teardown": 0.3},
            verdict=Verdict.KNOWN,
            reason="survivors of a preempted job overlap with its heir",
            findings=(
                finding(
                    "known:KR-4512",
                    rule="no-overlap",
                    cause="preempted",
                    text="heir t-9/urgent ran 612 to 640 ms together with 3 survivors of t-9/train: 3 CPU too many",
                ),
            ),
        ),
        record(
            f"{rows}[failed-DeleteCluster]",
            suite="deletion-policy",
            sentence="When a job has failed, what its deletion policy names is gone and nothing else is charged.",
            phases={"setup": 0.2, "call": 4.1, "judge": 0.9, "teardown": 0.3},
            verdict=Verdict.FAIL,
            reason="no-survivors: 2 pods of RayJob t-7/train lived on",
            failure="FindingError: …",
            findings=(finding(),),
            journal="journals/test_rule-failed-DeleteCluster.jsonl.gz",
            reproduce="pytest 'suites/test_deletion_policy.py::test_rule[failed-DeleteCluster]' --kueue 0.19.2 "
            "--kuberay 1.6.2 --cluster embedded",
        ),
        record(
            f"{rows}[succeeded-DeleteSelf]",
            suite="deletion-policy",
            sentence="When a job has succeeded, its deletion policy deletes the job itself.",
            verdict=Verdict.NOT_APPLICABLE,
            reason="gate deletion-rules: since KubeRay 1.5.0, behind a feature gate that is off",
        ),
        record(
            "suites/test_faults.py::test_kueue_restarts",
            suite="faults",
            sentence="A restart of Kueue changes nothing for a job that runs.",
            phases={"setup": 11.2},
            verdict=Verdict.INFRA,
            reason="ComponentDied: process kueue-manager ended with code 2 after 11 s; expected it to be ready",
            reproduce="pytest suites/test_faults.py::test_kueue_restarts",
            notes=("The guide's step 3 names a queue that its step 2 does not create.",),
        ),
    ]
