from __future__ import annotations

from typing import Any, cast

import pytest

from raykueue.clusters.existing.installed import look
from raykueue.errors import ClusterError
from raykueue.kube.client import Api, ApiError


class Answers:
    """An API that answers from a table."""

    server = "https://s"

    def __init__(self, deployments: list[Any], groups: tuple[str, ...]) -> None:
        self.table: dict[str, Any] = {
            "/version": {"gitVersion": "v1.33.5-eks-1a2b3c"},
            "/apis": {"groups": [{"name": name} for name in groups]},
            "/apis/apps/v1/deployments": {"items": deployments},
        }

    def get(self, path: str) -> Any:
        if path not in self.table:
            raise ApiError("GET", path, 403, {"message": "forbidden"})
        return self.table[path]


def answers(deployments: list[Any], groups: tuple[str, ...] = ("kueue.x-k8s.io", "ray.io", "apps")) -> Api:
    return cast("Api", Answers(deployments, groups))


def deployment(name: str, image: str, **labels: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": image}]}}
    return {"metadata": {"name": name, "namespace": "system", "labels": labels}, "spec": {"template": template}}


KUEUE = deployment("kueue-controller-manager", "mirror.example/k8s/kueue:v0.18.3")
KUBERAY = deployment("kuberay-operator", "mirror.example/kuberay/operator:v1.5.1")


def test_versions_and_deployments_are_found_whatever_mirror_they_come_from() -> None:
    found = look(answers([KUEUE, KUBERAY, deployment("web", "nginx:1.2.3")]))
    assert found.versions == {"kubernetes": "1.33.5", "kueue": "0.18.3", "kuberay": "1.5.1"}
    assert [component.name for component in found.components] == ["kueue", "kuberay"]
    assert found.components[0].deployed[0]["kind"] == "Deployment"


def test_an_image_by_digest_says_its_version_by_a_label() -> None:
    kueue = deployment("kueue", "site/kueue@sha256:ab", **{"app.kubernetes.io/version": "v0.19.2"})
    assert look(answers([kueue, KUBERAY])).versions["kueue"] == "0.19.2"
    tagged = deployment("kueue", "site/kueue:v0.19.2@sha256:ab")
    assert look(answers([tagged, KUBERAY])).versions["kueue"] == "0.19.2"


@pytest.mark.parametrize(
    ("api", "told"),
    [
        (answers([KUEUE, KUBERAY], groups=("ray.io",)), "serves no kueue.x-k8s.io: kueue is not there, and we install"),
        (answers([KUEUE]), "expected one Deployment of kuberay, found none"),
        (
            answers([KUEUE, KUEUE, KUBERAY]),
            "expected one Deployment of kueue, found system/kueue-controller",
        ),
        (
            answers([deployment("kueue", "site/kueue:main"), KUBERAY]),
            "system/kueue does not say which kueue",
        ),
    ],
)
def test_what_is_not_there_or_not_clear_is_told(api: Api, told: str) -> None:
    with pytest.raises(ClusterError, match=told):
        look(api)


def test_who_may_not_look_is_told() -> None:
    there = Answers([], ())
    del there.table["/apis/apps/v1/deployments"]
    with pytest.raises(ClusterError, match=r"the controllers of https://s can't be looked for: .* forbidden"):
        look(cast("Api", there))
