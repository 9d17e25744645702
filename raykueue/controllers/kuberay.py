"""KubeRay: the operator of the pinned module, as shipped."""

from __future__ import annotations

from pathlib import Path

from raykueue.clusters.protocol import ComponentSpec, Manifest, Process, Seat, ServiceAccount
from raykueue.controllers.rendered import Rendered, without
from raykueue.controllers.settings import DEFAULT, Settings

ACCOUNT = "kuberay-operator"
DASHBOARD_PORT = "ray dashboard"
"""The purpose of the port on which the simulated Ray answers for every head."""

LEFT_OUT_CRDS = ("raycronjobs.ray.io",)
"""Its feature gate is off; it costs a second of a cold start (docs/design.md)."""


def crds(rendered: Rendered) -> list[Manifest]:
    """KubeRay's CRDs."""
    return without(rendered.of("CustomResourceDefinition"), LEFT_OUT_CRDS)


def component(
    binary: Path, rendered: Rendered, settings: Settings = DEFAULT, *, simulated_ray: bool = True
) -> ComponentSpec:
    """The operator, under its own account.

    It calls every head's dashboard at http://<service>.<namespace>.svc.cluster.local:8265. There is no cluster network
    here; as Go's client sends plain http through HTTP_PROXY, all of these calls arrive at the simulated Ray.
    """
    shipped = rendered.one("Deployment", ACCOUNT)
    container = shipped["spec"]["template"]["spec"]["containers"][0]
    namespace = shipped["metadata"]["namespace"]
    shipped_gates, other_args = split_gates(container.get("args", []))
    gates = ",".join(
        f"{gate}={str(on).lower()}" for gate, on in sorted({**shipped_gates, **settings.kuberay_gates}.items())
    )

    def process(seat: Seat) -> Process:
        health = seat.port("kuberay health")
        proxy = f"http://127.0.0.1:{seat.port(DASHBOARD_PORT)}"
        return Process(
            argv=[
                str(binary),
                *other_args,
                *([f"--feature-gates={gates}"] if gates else []),
                "--enable-leader-election=false",
                f"--metrics-addr=127.0.0.1:{seat.port('kuberay metrics')}",
                f"--health-probe-bind-address=127.0.0.1:{health}",
                f"--kubeconfig={seat.kubeconfig}",
            ],
            env={
                "KUBECONFIG": str(seat.kubeconfig),
                "POD_NAMESPACE": namespace,
                "GOGC": "400",
                **({"HTTP_PROXY": proxy} if simulated_ray else {}),
                **settings.kuberay_env,
            },
            ready_url=f"http://127.0.0.1:{health}/readyz",
        )

    return ComponentSpec(
        name="kuberay",
        account=ServiceAccount(namespace, ACCOUNT),
        process=process,
        objects=rendered.bound_rbac(ACCOUNT),
        after=["ray"] if simulated_ray else [],
    )


def split_gates(args: list[str]) -> tuple[dict[str, bool], list[str]]:
    """The feature gates among a container's arguments, and the other arguments."""
    gates: dict[str, bool] = {}
    others = []
    for arg in args:
        if arg.startswith("--feature-gates="):
            for gate in arg.removeprefix("--feature-gates=").split(","):
                name, _, value = gate.partition("=")
                gates[name] = value == "true"
        else:
            others.append(arg)
    return gates, others
