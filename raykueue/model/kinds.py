"""Which kinds are watched, at which API version, and why: the one table.

For each kind the first group-version that the cluster serves is taken, so a kind is watched in one version only
(two versions would give the same revision twice). A kind that the pair does not serve makes the rules that need it
not applicable, never silently true.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One watched kind."""

    name: str
    versions: tuple[str, ...]
    """Group-versions, newest first: "v1", "kueue.x-k8s.io/v1beta2", …"""
    plural: str
    namespaced: bool
    why: str

    def path(self, version: str, namespace: str = "", name: str = "") -> str:
        """The URL path of the collection, or of one object."""
        base = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        middle = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{base}{middle}/{self.plural}" + (f"/{name}" if name else "")


_KUEUE = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")
_RAY = ("ray.io/v1",)
_RBAC = ("rbac.authorization.k8s.io/v1",)

KINDS: tuple[Kind, ...] = (
    Kind("RayJob", _RAY, "rayjobs", True, "what is queued, and its status"),
    Kind("RayCluster", _RAY, "rayclusters", True, "links pods to their RayJob"),
    Kind("Workload", _KUEUE, "workloads", True, "holds, and what they are charged"),
    Kind("Pod", ("v1",), "pods", True, "demand"),
    Kind("Job", ("batch/v1",), "jobs", True, "links submitter and clean-up pods to their RayJob"),
    Kind("ClusterQueue", _KUEUE, "clusterqueues", False, "nominal quota, and what is booked"),
    Kind("LocalQueue", _KUEUE, "localqueues", True, "where a job is submitted"),
    Kind("Cohort", (*_KUEUE, "kueue.x-k8s.io/v1alpha1"), "cohorts", False, "quota that is shared"),
    Kind("ResourceFlavor", _KUEUE, "resourceflavors", False, "labels and tolerations that pods must carry"),
    Kind("WorkloadPriorityClass", _KUEUE, "workloadpriorityclasses", False, "who may preempt whom"),
    Kind("AdmissionCheck", _KUEUE, "admissionchecks", False, "why quota is reserved but not admitted"),
    Kind("Service", ("v1",), "services", True, "what is left behind"),
    Kind("ServiceAccount", ("v1",), "serviceaccounts", True, "what is left behind"),
    Kind("Role", _RBAC, "roles", True, "what is left behind"),
    Kind("RoleBinding", _RBAC, "rolebindings", True, "what is left behind"),
    Kind("LimitRange", ("v1",), "limitranges", True, "changes what pods ask"),
    Kind("Node", ("v1",), "nodes", False, "labels that flavors ask for"),
    Kind("Namespace", ("v1",), "namespaces", False, "scopes"),
)

BY_NAME: dict[str, Kind] = {kind.name: kind for kind in KINDS}
