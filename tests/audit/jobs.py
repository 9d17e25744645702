"""A RayJob of a generated journal, with Workloads and pods. A docstring such as W+a is the sign of what it writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.audit.queued import Queue
from tests.audit.written import NAMESPACE, Json, Writer, quantity

DEFAULT = {"head": 1, "workers": 1, "submitter": 0.5}


class Job:
    """A RayJob in a LocalQueue of `queue`; `pods`: what one pod of each PodSet asks, `counts`: how many."""

    def __init__(
        self,
        j: Writer,
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
