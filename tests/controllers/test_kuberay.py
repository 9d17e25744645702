from __future__ import annotations

from pathlib import Path

import pytest

from raykueue.clusters.protocol import Process, ServiceAccount
from raykueue.controllers import kuberay
from raykueue.controllers.settings import DEFAULT, Settings
from tests.controllers.shipped import Seat
from tests.controllers.shipped import kuberay as shipped


def process(*args: str, settings: Settings = DEFAULT, simulated: bool = True) -> Process:
    return kuberay.component(Path("/bin/kuberay"), shipped(*args), settings, simulated_ray=simulated).process(Seat())


def gates(about: Process) -> list[str]:
    return [arg.removeprefix("--feature-gates=") for arg in about.argv if arg.startswith("--feature-gates=")]


@pytest.mark.parametrize(
    ("args", "settings", "flags"),
    [
        ((), {}, []),
        (("--feature-gates=A=true",), {}, ["A=true"]),
        (("--feature-gates=A=true,B=false",), {"B": True, "C": True}, ["A=true,B=true,C=true"]),
        ((), {"C": False}, ["C=false"]),
    ],
)
def test_shipped_gates_and_those_of_a_test_are_one_flag(
    args: tuple[str, ...], settings: dict[str, bool], flags: list[str]
) -> None:
    assert gates(process(*args, settings=Settings(kuberay_gates=settings))) == flags


def test_other_shipped_arguments_stay() -> None:
    about = process("--watch-namespace=a", "--feature-gates=A=true")
    assert about.argv[:3] == ["/bin/kuberay", "--watch-namespace=a", "--feature-gates=A=true"]
    assert "--kubeconfig=/seat/kubeconfig" in about.argv


def test_calls_of_a_dashboard_go_to_the_simulated_ray_and_to_nowhere_else_with_a_real_one() -> None:
    seat = Seat()
    about = kuberay.component(Path("/bin/kuberay"), shipped()).process(seat)
    assert about.env["HTTP_PROXY"] == f"http://127.0.0.1:{seat.port(kuberay.DASHBOARD_PORT)}"
    assert "HTTP_PROXY" not in process(simulated=False).env


def test_it_starts_after_the_simulated_ray() -> None:
    assert kuberay.component(Path("/bin/kuberay"), shipped()).after == ["ray"]
    assert kuberay.component(Path("/bin/kuberay"), shipped(), simulated_ray=False).after == []


def test_it_has_its_own_account_and_the_environment_that_a_test_adds() -> None:
    spec = kuberay.component(Path("/bin/kuberay"), shipped(), Settings(kuberay_env={"RAYJOB_X": "1"}))
    assert spec.account == ServiceAccount("system", "kuberay-operator")
    assert [one["kind"] for one in spec.objects] == ["ServiceAccount", "ClusterRole", "ClusterRoleBinding"]
    about = spec.process(Seat())
    assert (about.env["RAYJOB_X"], about.env["POD_NAMESPACE"]) == ("1", "system")
    assert about.ready_url in {f"http://127.0.0.1:{port}/readyz" for port in range(1, 5)}
    assert (
        f"--health-probe-bind-address={about.ready_url.removeprefix('http://').removesuffix('/readyz')}" in about.argv
    )


def test_the_crd_of_a_gate_that_is_off_is_left_out() -> None:
    assert [crd["metadata"]["name"] for crd in kuberay.crds(shipped())] == ["rayjobs.ray.io"]
