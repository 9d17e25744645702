"""Where controllers run when they are Deployments."""

from __future__ import annotations

from raykueue.controllers.deployed import CONTROL_PLANE, kuberay_component
from tests.controllers.shipped import kuberay as shipped


def test_a_controller_runs_on_the_control_plane_and_leaves_the_other_nodes_whole() -> None:
    (deployment,) = [one for one in kuberay_component("", shipped()).deployed if one["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    assert pod["nodeSelector"][CONTROL_PLANE] == ""
    assert {"key": CONTROL_PLANE, "operator": "Exists"} in pod["tolerations"]
