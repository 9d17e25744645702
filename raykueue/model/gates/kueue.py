"""What versions of Kueue do."""

from __future__ import annotations

from raykueue.model.gates.definition import Gate
from raykueue.model.gates.ranges import Range, since
from raykueue.model.gates.signs import AtLeast, Feature, KnowsFeature, Served, Webhook

_RAYJOB = "kueue pkg/controller/jobs/rayjob/rayjob_controller.go"
_WEBHOOK = "kueue pkg/controller/jobs/rayjob/rayjob_webhook.go"
_RAY = "kueue pkg/controller/jobs/raycluster/common.go"
_RECONCILER = "kueue pkg/controller/jobframework/reconciler.go"
_FEATURES = "kueue pkg/features/kube_features.go"
_WORKLOADS = "workloads.kueue.x-k8s.io"

KUEUE: tuple[Gate, ...] = (
    # What is charged.
    Gate(
        "submitter-pod-set",
        "kueue",
        since("0.10.0"),
        f"{_RAYJOB}:148@v0.10.6 (#3729)",
        "in K8sJobMode the submitter pod is charged, in a PodSet of its own",
    ),
    Gate(
        "sidecar-submitter-charged",
        "kueue",
        since("0.17.7", "0.18.3", "0.19.0"),
        f"{_RAYJOB}:345@v0.17.8, :314@v0.19.2 (#12725, #12726, #12454)",
        "in SidecarMode the submitter's container is charged with the head",
    ),
    Gate(
        "redis-cleanup-charged",
        "kueue",
        since("0.17.6", "0.18.2", "0.19.0"),
        f"{_RAY}:78@v0.17.8, :93@v0.19.2 (#11260, #12395)",
        "the Redis clean-up pod is charged within the head",
    ),
    Gate(
        "autoscaler-sidecar-charged",
        "kueue",
        since("0.19.0"),
        f"{_RAY}:98-107, :153-190@v0.19.2 (#12405)",
        "the autoscaler's container is charged with the head",
    ),
    Gate(
        "pod-level-resources-charged",
        "kueue",
        since("0.17.7", "0.18.3", "0.19.0"),
        "kueue pkg/workload/resources.go@v0.19.2 (#12780, #12731, #12334)",
        "resources that a pod asks for as a whole are charged, and not only those of its containers",
    ),
    Gate(
        "negative-requests-refused",
        "kueue",
        since("0.18.5", "0.19.1"),
        f"{_FEATURES}:935@v0.19.2 (#13392, #13391)",
        "a negative request is refused; before, it is booked as credit",
        Feature("kueue", "WorkloadValidateResourcesAreNonNegative"),
    ),
    # Pods and where they run.
    Gate(
        "default-submitter-placed",
        "kueue",
        since("0.17.7", "0.18.3", "0.19.0"),
        f"{_RAYJOB}@v0.19.2 (#12695, #12696, #12644)",
        "a submitter without a template of its own carries its flavor's labels and tolerations",
    ),
    Gate(
        "queue-labels-on-pods",
        "kueue",
        since("0.17.0"),
        f"{_FEATURES}:525@v0.17.1",
        "every pod carries the names of its ClusterQueue and LocalQueue",
        Feature("kueue", "AssignQueueLabelsForPods"),
    ),
    # The API.
    Gate(
        "v1beta2",
        "kueue",
        since("0.15.0"),
        "kueue apis/kueue/v1beta2@v0.15.0",
        "the API is served as v1beta2; before, only v1beta1 is",
        Served(_WORKLOADS, "v1beta2"),
    ),
    Gate(
        "cohort-v1beta1",
        "kueue",
        since("0.13.0"),
        "kueue apis/kueue/v1beta1/cohort_types.go@v0.14.0",
        "cohorts are objects of v1beta1; before, v1alpha1 has them with another field for the parent",
        Served("cohorts.kueue.x-k8s.io", "v1beta1"),
    ),
    Gate(
        "nine-worker-groups",
        "kueue",
        since("0.18.0"),
        "kueue pkg/controller/jobframework/constants.go:20@v0.18.3 (#11388)",
        "a RayJob may have 9 worker groups; before, 7",
        AtLeast(_WORKLOADS, "spec.podSets", 10),
    ),
    Gate(
        "seventeen-worker-groups",
        "kueue",
        since("0.19.0"),
        "kueue pkg/controller/jobframework/constants.go:20-21@v0.19.2",
        "a RayJob may have 17 worker groups; before, 9",
        AtLeast(_WORKLOADS, "spec.podSets", 18),
    ),
    # What is taken, and what is refused.
    Gate(
        "failed-rule-passes",
        "kueue",
        (Range(before="0.15.0-0"), Range("0.17.0-0")),
        "kueue go.mod (ray-operator v1.5.1)@v0.16.2; kuberay ray-operator/apis/ray/v1/rayjob_types.go:147@v1.5.1",
        "a deletion rule without a jobStatus passes Kueue's webhook; one that knows KubeRay's types of 1.5 writes an "
        "empty jobStatus into the rule, queued or not, which the API server then refuses",
    ),
    Gate(
        "queue-label-kept",
        "kueue",
        since("0.18.6", "0.19.2"),
        f"{_WEBHOOK}:166@v0.19.2 (#14676, #14666)",
        "the queue's label can't be taken off a running job; before, it runs on without a Workload",
        Feature("kueue", "ValidateRayAndSparkJobUpdates"),
    ),
    Gate(
        "rayservice-managed",
        "kueue",
        since("0.17.0"),
        "kueue pkg/controller/jobs/rayservice/rayservice_controller.go@v0.17.1 (#9102)",
        "a RayService can be queued itself; before, only the RayCluster below it",
        Webhook("mrayservice.kb.io"),
    ),
    Gate(
        "elastic-jobs-default",
        "kueue",
        since("0.18.0"),
        f"{_FEATURES}@v0.18.3",
        "jobs can be autoscaled as elastic jobs without setting the gate ElasticJobsViaWorkloadSlices",
        Feature("kueue", "ElasticJobsViaWorkloadSlices"),
    ),
    # A hold, from its begin to its end.
    Gate(
        "workload-made-at-once",
        "kueue",
        since("0.11.0"),
        f"{_RAYJOB}:90@v0.10.6, :97@v0.11.9",
        "a RayJob has its Workload at once; before, not until KubeRay has written Suspended",
    ),
    Gate(
        "equal-jobs-passed-over",
        "kueue",
        (Range("0.15.6", "0.15.7"), Range("0.16.3", "0.16.4"), Range("0.18.0")),
        f"{_FEATURES}:649@v0.18.3",
        "a job like one that was just found not to fit is passed over, and gets no reason",
        Feature("kueue", "SchedulingEquivalenceHashing"),
    ),
    Gate(
        "wait-for-pods-ready-default",
        "kueue",
        since("0.19.0"),
        "kueue apis/config/v1beta2/defaults.go:99-117@v0.19.2",
        "a job whose pods are not ready in time is evicted unless the configuration says otherwise",
        KnowsFeature("kueue", "DisableWaitForPodsReady"),
    ),
    Gate(
        "invalid-job-on-hold",
        "kueue",
        since("0.18.5", "0.19.1"),
        f"{_RAYJOB}:213@v0.18.6, :218@v0.19.2 (#14194, #14192)",
        "a RayJob that is admitted and then found invalid gives its quota back; before, it keeps it",
    ),
    Gate(
        "finished-child-suspended",
        "kueue",
        (Range("0.15.0", "0.15.3"), Range("0.15.4", "0.16.0-0"), Range("0.16.1")),
        f"{_RECONCILER}:382-388@v0.15.0, :722@v0.15.8, :790@v0.16.9, :766-788, :848-863@v0.19.2",
        "the RayCluster of a RayJob that has finished is suspended, head and all, at its next event, and so is its "
        "submitter Job",
    ),
    Gate(
        "clean-up-let-run",
        "kueue",
        (Range("0.11.0-0", "0.15.0"), Range("0.15.3", "0.15.4"), Range("0.16.0-0", "0.16.1")),
        f"{_RECONCILER}:320-338@v0.10.1, :321-327@v0.11.0, :359-365@v0.14.0, :766-788@v0.19.2",
        "the Job that cleans Redis after a finished RayJob runs; before, it is suspended for want of a Workload of its "
        "RayCluster, and where a finished job's children are suspended, as one of those",
    ),
    Gate(
        "orphans-finished",
        "kueue",
        (Range("0.16.6", "0.16.8"), Range("0.17.1", "0.17.3"), Range("0.18.0")),
        f"{_FEATURES}:480@v0.16.6, :564@v0.17.1, :683@v0.18.3; "
        "pkg/controller/core/workload_controller.go:205-219@v0.16.6, :216-229, :1291-1317@v0.17.1; "
        "pkg/workload/workload.go:1606@v0.18.3",
        "the Workload of a deleted RayJob is finished and its quota given back while pods still run: from 0.18.0 on as "
        "soon as the deletion is asked for, before only once the RayJob is gone, or another has its name",
        Feature("kueue", "FinishOrphanedWorkloads"),
    ),
)
