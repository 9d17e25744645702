"""Journals as a few lines of Python: each call writes one object, at the clock's time, with the next revision.

    j = Journal()
    q = j.queue("team", cpu=3)
    a = j.job("a", q)                 # head 1, worker 1, submitter 0.5 CPU
    j.at(0); a.workload.admit()       # W+a@0
    j.at(1); q.books(2.5, 2.5)        # Q=2.5/2.5@1
    assert j.findings(until=10) == []

`arrives=0.5` lets an event come in half a second after it was written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from raykueue.audit.ledger import Ledger
from raykueue.audit.thresholds import Thresholds
from raykueue.model.events import Barrier, Event, EventType, Marker, Record
from raykueue.model.findings import Finding

EPOCH = 1_790_000_000 * 10**9
PAIR = {"kubernetes": "1.34.4", "kueue": "0.19.2", "kuberay": "1.6.2"}
NAMESPACE = "team-ns"
Json = dict[str, Any]


def quantity(value: float | str) -> str:
    return value if isinstance(value, str) else f"{round(value * 1000)}m"


class Journal:
    def __init__(self, version: str = "v1beta2", pair: Mapping[str, str] = PAIR, about: tuple[str, ...] = ()) -> None:
        """`about`: the rules whose findings `findings` tells; none: all."""
        self.version = version
        self.about = about
        self.pair = pair
        self.records: list[Record] = []
        self.rev = 100
        self.now = EPOCH
        self.uids = 0

    def at(self, seconds: float) -> Journal:
        self.now = EPOCH + round(seconds * 1e9)
        return self

    def uid(self, prefix: str) -> str:
        self.uids += 1
        return f"{prefix}-{self.uids:04}"

    def emit(self, kind: str, obj: Json, type_: EventType = "MODIFIED", arrives: float = 0.0) -> Event:
        self.rev += 1
        shown = json.loads(json.dumps(obj))  # three times as fast as copy.deepcopy
        shown["metadata"]["resourceVersion"] = str(self.rev)
        event = Event(kind, type_, self.rev, self.now + round(arrives * 1e9), shown)
        self.records.append(event)
        return event

    def marker(self, what: str) -> None:
        self.records.append(Marker(what, self.now))

    def queue(self, name: str = "cq", **spec: Any) -> Queue:
        return Queue(self, name, **spec)

    def flavor(self, name: str = "default", tolerations: list[Json] | None = None, **labels: str) -> Flavor:
        return Flavor(self, name, labels, tolerations or [])

    def node(self, name: str = "node-1", **labels: str) -> Node:
        return Node(self, name, labels)

    def cohort(self, name: str, **spec: Any) -> Cohort:
        return Cohort(self, name, **spec)

    def job(self, name: str, queue: Queue, **settings: Any) -> Job:
        return Job(self, name, queue, **settings)

    def arrivals(self) -> list[Record]:
        """In order of arrival."""
        return sorted(self.records, key=lambda r: r.arrived)

    def ledger(self, until: float, settings: Thresholds | None = None, *, stepwise: bool = False) -> Ledger:
        ledger = Ledger(settings or Thresholds(), self.pair)
        end = EPOCH + round(until * 1e9)
        for records in self._slices() if stepwise else [(self.rev, self.arrivals())]:
            rev, batch = records
            for record in batch:
                ledger.add(record)
            if stepwise and batch:
                ledger.fold(Barrier(rev, batch[-1].arrived))
        ledger.fold(Barrier(self.rev, end))
        return ledger

    def _slices(self) -> Iterator[tuple[int, list[Record]]]:
        """One record at a time, each with the highest revision up to which nothing is missing any more."""
        arrivals = self.arrivals()
        missing = sorted(r.rev for r in arrivals if isinstance(r, Event))
        for record in arrivals:
            if isinstance(record, Event):
                missing.remove(record.rev)
            yield (missing[0] - 1 if missing else self.rev), [record]

    def findings(self, until: float, settings: Thresholds | None = None) -> list[Finding]:
        """The findings of the rules it is about; folding at once and after every record must give the same."""
        at_once = self.ledger(until, settings).unscoped([])
        stepwise = self.ledger(until, settings, stepwise=True).unscoped([])
        assert at_once == stepwise
        return [f for f in at_once if f.rule in self.about or not self.about]


def groups(resources: Mapping[str, Mapping[str, Any]]) -> list[Json]:
    """One resource group; {"flavor": {"cpu": 3, "memory": (nominal, borrowingLimit, lendingLimit)}}."""
    flavors: list[Json] = []
    for flavor, quotas in resources.items():
        listed: list[Json] = []
        for resource, quota in quotas.items():
            nominal, borrowing, lending = quota if isinstance(quota, tuple) else (quota, None, None)
            entry: Json = {"name": resource, "nominalQuota": quantity(nominal)}
            if borrowing is not None:
                entry["borrowingLimit"] = quantity(borrowing)
            if lending is not None:
                entry["lendingLimit"] = quantity(lending)
            listed.append(entry)
        flavors.append({"name": flavor, "resources": listed})
    covered = sorted({r for quotas in resources.values() for r in quotas})
    return [{"coveredResources": covered, "flavors": flavors}]


class Queue:
    def __init__(
        self, j: Journal, name: str, cpu: Any = 3, cohort: str = "", flavors: Mapping[str, Any] | None = None
    ) -> None:
        self.j = j
        self.name = name
        self.flavors: dict[str, Any] = dict(flavors or {"default": {"cpu": cpu}})
        self.body: Json = {
            "apiVersion": f"kueue.x-k8s.io/{j.version}",
            "metadata": {"name": name, "uid": j.uid("cq")},
            "spec": {"resourceGroups": groups(self.flavors)},
        }
        if cohort:
            self.body["spec"]["cohortName" if j.version == "v1beta2" else "cohort"] = cohort
        j.emit("ClusterQueue", self.body, "ADDED")

    def edit(self, arrives: float = 0.0, **flavors: Any) -> None:
        self.flavors = flavors
        self.body["spec"]["resourceGroups"] = groups(flavors)
        self.j.emit("ClusterQueue", self.body, arrives=arrives)

    def books(self, usage: Any, reservation: Any, n: tuple[int, int] | None = None, borrowed: Any = 0) -> None:
        """usage/reservation: CPU, or {"flavor": {"resource": value}}; n: (reserving, admitted) Workloads."""
        used, reserved = self._entries(usage, borrowed), self._entries(reservation, borrowed)
        counts = n if n is not None else (int(bool(reservation)), int(bool(usage)))
        self.body["status"] = {
            "flavorsUsage": used,
            "flavorsReservation": reserved,
            "reservingWorkloads": counts[0],
            "admittedWorkloads": counts[1],
            "pendingWorkloads": 0,
        }
        self.j.emit("ClusterQueue", self.body)

    def terminate(self) -> None:
        self.body["metadata"]["deletionTimestamp"] = "2026-10-01T00:00:00Z"
        self.j.emit("ClusterQueue", self.body)

    def gone(self) -> None:
        self.j.emit("ClusterQueue", self.body, "DELETED")

    def _entries(self, totals: Any, borrowed: Any) -> list[Json]:
        values = totals if isinstance(totals, Mapping) else {"default": {"cpu": totals}}
        return [
            {
                "name": flavor,
                "resources": [
                    {"name": r, "total": quantity(values.get(flavor, {}).get(r, 0)), "borrowed": quantity(borrowed)}
                    for r in quotas
                ],
            }
            for flavor, quotas in self.flavors.items()
        ]


class Cohort:
    def __init__(self, j: Journal, name: str, parent: str = "", flavors: Mapping[str, Any] | None = None) -> None:
        self.j = j
        self.body: Json = {
            "metadata": {"name": name, "uid": j.uid("cohort")},
            "spec": {"parentName": parent, "resourceGroups": groups(flavors or {})},
        }
        j.emit("Cohort", self.body, "ADDED")

    def gone(self) -> None:
        self.j.emit("Cohort", self.body, "DELETED")


class Flavor:
    def __init__(self, j: Journal, name: str, labels: Mapping[str, str], tolerations: list[Json]) -> None:
        self.j = j
        self.body: Json = {
            "metadata": {"name": name, "uid": j.uid("flavor")},
            "spec": {"nodeLabels": dict(labels), "tolerations": tolerations},
        }
        j.emit("ResourceFlavor", self.body, "ADDED")

    def edit(self, **labels: str) -> None:
        self.body["spec"]["nodeLabels"] = labels
        self.j.emit("ResourceFlavor", self.body)

    def gone(self) -> None:
        self.j.emit("ResourceFlavor", self.body, "DELETED")


class Node:
    def __init__(self, j: Journal, name: str, labels: Mapping[str, str]) -> None:
        self.j = j
        self.body: Json = {"metadata": {"name": name, "uid": j.uid("node"), "labels": dict(labels)}}
        j.emit("Node", self.body, "ADDED")

    def relabel(self, **labels: str) -> None:
        self.body["metadata"]["labels"] = labels
        self.j.emit("Node", self.body)

    def gone(self) -> None:
        self.j.emit("Node", self.body, "DELETED")


DEFAULT = {"head": 1, "workers": 1, "submitter": 0.5}


class Job:
    """A RayJob in a LocalQueue of `queue`; `pods`: what one pod of each PodSet asks, `counts`: how many."""

    def __init__(
        self,
        j: Journal,
        name: str,
        queue: Queue,
        pods: Mapping[str, Any] = DEFAULT,
        counts: Mapping[str, int] | None = None,
        labelled: bool = True,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        self.j = j
        self.name = name
        self.queue = queue
        self.pods = {p: c if isinstance(c, Mapping) else {"cpu": c} for p, c in pods.items()}
        self.counts = {**dict.fromkeys(pods, 1), **(counts or {})}
        self.workloads = 0
        self.clusters = 0
        self.submitter: Json | None = None
        self.cluster: Json | None = None
        labels = {"kueue.x-k8s.io/queue-name": "lq"} if labelled else {}
        self.body: Json = {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": j.uid(f"rayjob-{name}"),
                "labels": labels,
                "annotations": dict(annotations or {}),
            },
            "spec": {"suspend": True, **spec},
            "status": {},
        }
        j.emit("RayJob", self.body, "ADDED")
        self.workload = Workload(self)

    def state(self, deployment: str, job: str = "", arrives: float = 0.0) -> None:
        """J:X."""
        self.body["status"].update({"jobDeploymentStatus": deployment, "jobStatus": job})
        self.j.emit("RayJob", self.body, arrives=arrives)

    def suspend(self, value: bool) -> None:
        """J.s=T/F."""
        self.body["spec"]["suspend"] = value
        self.j.emit("RayJob", self.body)

    def terminate(self) -> None:
        """J~."""
        self.body["metadata"]["deletionTimestamp"] = "2026-10-01T00:00:00Z"
        self.j.emit("RayJob", self.body)

    def gone(self) -> None:
        """J-."""
        self.j.emit("RayJob", self.body, "DELETED")

    def owned(self, kind: str, name: str, owner: Json, owner_kind: str, **metadata: Any) -> Json:
        reference = {
            "kind": owner_kind,
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
        base = {"name": name, "namespace": NAMESPACE, "uid": self.j.uid(f"{kind.lower()}-{name}")}
        return {"metadata": {**base, "ownerReferences": [reference], **metadata}}

    def start_cluster(self) -> Json:
        """C+."""
        self.clusters += 1
        name = f"{self.name}-{self.clusters:05}"
        labels = dict(self.body["metadata"]["labels"])
        self.cluster = self.owned("RayCluster", name, self.body, "RayJob", labels=labels)
        self.j.emit("RayCluster", self.cluster, "ADDED")
        return self.cluster

    def stop_cluster(self) -> None:
        """C-."""
        assert self.cluster is not None
        self.j.emit("RayCluster", self.cluster, "DELETED")
        self.cluster = None

    def pod(self, pod_set: str, suffix: str = "1", **changes: Any) -> Pod:
        """P+; makes the cluster or submitter Job first if there is none. `cpu`, `more` (containers), `gated`, …"""
        return Pod(self, pod_set, suffix, **changes)

    def start(self) -> list[Pod]:
        """J.s=F, C+ and every pod of the job."""
        self.suspend(False)
        return [self.pod(p, str(n)) for p, count in self.counts.items() for n in range(1, count + 1)]

    def owner_of(self, pod_set: str) -> tuple[Json, str]:
        if pod_set != "submitter":
            return self.cluster or self.start_cluster(), "RayCluster"
        if self.submitter is None:
            self.submitter = self.owned("Job", self.name, self.body, "RayJob")
            self.j.emit("Job", self.submitter, "ADDED")
        return self.submitter, "Job"

    def another_workload(self, **settings: Any) -> Workload:
        return Workload(self, **settings)


class Workload:
    """W. Nothing is written before the first call; that one is ADDED."""

    def __init__(self, job: Job, replaces: str = "", counts: Mapping[str, int] | None = None) -> None:
        job.workloads += 1
        self.job = job
        self.counts = {**job.counts, **(counts or {})}
        self.name = f"rayjob-{job.name}-{job.workloads}"
        self.body = job.owned("Workload", self.name, job.body, "RayJob")
        if replaces:
            self.body["metadata"]["annotations"] = {
                "kueue.x-k8s.io/workload-slice-replacement-for": f"{NAMESPACE}/{replaces}"
            }
        self.body["spec"] = {
            "queueName": "lq",
            "active": True,
            "podSets": [
                {"name": p, "count": self.counts[p], "template": {"spec": {"containers": [{"name": "main"}]}}}
                for p in job.pods
            ],
        }
        self.body["status"] = {"conditions": []}
        self.written = False

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    def write(self, arrives: float = 0.0) -> None:
        self.job.j.emit("Workload", self.body, "MODIFIED" if self.written else "ADDED", arrives)
        self.written = True

    def condition(self, kind: str, value: bool, reason: str = "Test", message: str = "", time: str = "") -> None:
        conditions = [c for c in self.body["status"]["conditions"] if c["type"] != kind]
        more = {"message": message, "lastTransitionTime": time}
        new = {"type": kind, "status": str(value), "reason": reason, **{k: v for k, v in more.items() if v}}
        self.body["status"]["conditions"] = [*conditions, new]

    def assign(self, flavor: str | Mapping[str, str] = "default") -> None:
        """The admission, as Kueue writes it: resourceUsage is the total of all pods of a PodSet."""
        assignments: list[Json] = []
        for pod_set, asked in self.job.pods.items():
            chosen = flavor if isinstance(flavor, str) else flavor[pod_set]
            count = self.counts[pod_set]
            usage = {r: quantity(v * count) if not isinstance(v, str) else v for r, v in asked.items()}
            flavors = dict.fromkeys(asked, chosen)
            assignments.append({"name": pod_set, "count": count, "flavors": flavors, "resourceUsage": usage})
        self.body["status"]["admission"] = {
            "clusterQueue": self.job.queue.name,
            "podSetAssignments": assignments,
        }

    def reserve(self, arrives: float = 0.0, flavor: str | Mapping[str, str] = "default") -> None:
        """W+."""
        self.assign(flavor)
        self.condition("QuotaReserved", True)
        self.write(arrives)

    def admit(self, arrives: float = 0.0, flavor: str | Mapping[str, str] = "default") -> None:
        """W+a."""
        self.assign(flavor)
        self.condition("QuotaReserved", True)
        self.condition("Admitted", True)
        self.write(arrives)

    def evict(self) -> None:
        """Wev."""
        self.condition("Evicted", True, "Preempted")
        self.write()

    def release(self, arrives: float = 0.0) -> None:
        """W-: one write clears admission, QuotaReserved and Admitted."""
        self.body["status"].pop("admission", None)
        self.condition("QuotaReserved", False)
        self.condition("Admitted", False)
        self.write(arrives)

    def finish(self, reason: str = "Succeeded", arrives: float = 0.0) -> None:
        """Wfin."""
        self.condition("Finished", True, reason)
        self.write(arrives)

    def off(self) -> None:
        """Woff."""
        self.body["spec"]["active"] = False
        self.write()

    def scale(self, pod_set: str, count: int) -> None:
        """Elastic, in place: the spec's count falls below the assigned one."""
        for one in self.body["spec"]["podSets"]:
            if one["name"] == pod_set:
                one["count"] = count
        self.write()

    def gone(self, arrives: float = 0.0) -> None:
        """Wdel."""
        self.job.j.emit("Workload", self.body, "DELETED", arrives)


class Pod:
    """P+."""

    def __init__(
        self,
        job: Job,
        pod_set: str,
        suffix: str,
        cpu: Any = None,
        requests: Mapping[str, Any] | None = None,
        more: Mapping[str, Any] | None = None,
        inits: list[Json] | None = None,
        gated: bool = False,
        node: str = "node-1",
        grace: int = 30,
        labels: Mapping[str, str] | None = None,
        owner: tuple[Json, str] | None = None,
        arrives: float = 0.0,
        **spec: Any,
    ) -> None:
        self.job = job
        asked = dict(requests if requests is not None else job.pods.get(pod_set, {"cpu": 0.1}))
        if cpu is not None:
            asked["cpu"] = cpu
        reference, kind = owner or job.owner_of(pod_set)
        node_type = {"head": "head", "submitter": None}.get(pod_set, "worker")
        own = {"kueue.x-k8s.io/podset": pod_set}
        if node_type:
            own |= {"ray.io/node-type": node_type, "ray.io/cluster": reference["metadata"]["name"]}
        self.body = job.owned("Pod", f"{job.name}-{pod_set}-{suffix}", reference, kind)
        self.body["metadata"]["labels"] = own if labels is None else dict(labels)
        self.body["spec"] = {
            "containers": [
                {"name": "main", "resources": {"requests": {r: quantity(v) for r, v in asked.items()}}},
                *({"name": n, "resources": {"requests": {"cpu": quantity(v)}}} for n, v in (more or {}).items()),
            ],
            "initContainers": inits or [],
            "terminationGracePeriodSeconds": grace,
            **spec,
        }
        if gated:
            self.body["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/elastic-job"}]
        elif node:
            self.body["spec"]["nodeName"] = node
        self.body["status"] = {"phase": "Running" if node and not gated else "Pending"}
        job.j.emit("Pod", self.body, "ADDED", arrives)

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    def terminate(self) -> None:
        """P~."""
        self.body["metadata"]["deletionTimestamp"] = "2026-10-01T00:00:00Z"
        self.body["metadata"]["deletionGracePeriodSeconds"] = self.body["spec"]["terminationGracePeriodSeconds"]
        self.job.j.emit("Pod", self.body)

    def end(self, phase: str = "Succeeded") -> None:
        """P.f."""
        self.body["status"]["phase"] = phase
        self.job.j.emit("Pod", self.body)

    def ungate(self) -> None:
        self.body["spec"].pop("schedulingGates")
        self.body["status"]["phase"] = "Running"
        self.job.j.emit("Pod", self.body)

    def bind(self, node: str = "node-1") -> None:
        self.body["spec"]["nodeName"] = node
        self.body["status"]["phase"] = "Running"
        self.job.j.emit("Pod", self.body)

    def resize(self, cpu: Any) -> None:
        self.body["spec"]["containers"][0]["resources"]["requests"]["cpu"] = quantity(cpu)
        self.job.j.emit("Pod", self.body)

    def gone(self, arrives: float = 0.0) -> None:
        """P-."""
        self.job.j.emit("Pod", self.body, "DELETED", arrives)
