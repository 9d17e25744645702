"""What the real modules ship, if a cluster was ever started here: the facts that the controllers' code relies on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from raykueue.clusters.protocol import ComponentSpec, Manifest
from raykueue.clusters.services import call_loopback
from raykueue.controllers import kuberay, kueue
from raykueue.controllers.rendered import Rendered, kept_at, render
from raykueue.toolchain.builder import Toolchain
from raykueue.toolchain.lock import load_versions
from tests.controllers.shipped import Seat

Render = Callable[[str], Rendered]


@pytest.fixture(scope="module")
def rendered() -> Render:
    versions = load_versions()
    toolchain, pair = Toolchain(versions), versions.pair()
    cache, kustomize = toolchain.store.root, toolchain.have("kustomize", pair)
    done = {}
    for product in ("kueue", "kuberay"):
        sources = toolchain.have(f"{product}-sources", pair)
        if kustomize is None or sources is None or not kept_at(kustomize, sources, cache).exists():
            pytest.skip(f"{product} of {pair} was not rendered yet: the first start of a cluster does it")
        done[product] = render(product, kustomize, sources, cache)
    return done.__getitem__


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> kueue.WebhookKeys:
    return kueue.WebhookKeys(tmp_path_factory.mktemp("cache") / "keys")


@pytest.fixture(scope="module")
def specs(rendered: Render, keys: kueue.WebhookKeys) -> dict[str, ComponentSpec]:
    version = load_versions().pair().kueue
    return {
        "kueue": kueue.component(Path("/bin/kueue"), version, rendered("kueue"), keys),
        "kuberay": kuberay.component(Path("/bin/kuberay"), rendered("kuberay")),
    }


def services_in(manifest: object) -> list[object]:
    """Every `clientConfig.service`, however deep."""
    if isinstance(manifest, dict):
        mine = [manifest["service"]] if isinstance(manifest.get("service"), dict) else []
        return mine + [one for value in manifest.values() for one in services_in(value)]
    return [one for value in manifest for one in services_in(value)] if isinstance(manifest, list) else []


def test_five_crds_of_kueue_convert_and_none_of_kuberay(rendered: Render) -> None:
    def converting(crds: list[Manifest]) -> list[str]:
        return sorted(crd["spec"]["names"]["plural"] for crd in crds if "webhook" in crd["spec"].get("conversion", {}))

    assert converting(kueue.crds(rendered("kueue"))) == [
        "clusterqueues",
        "cohorts",
        "localqueues",
        "multikueueclusters",
        "workloads",
    ]
    assert converting(kuberay.crds(rendered("kuberay"))) == []


def test_no_webhook_is_called_at_a_service_any_more_and_each_trusts_the_authority(
    rendered: Render, specs: dict[str, ComponentSpec], keys: kueue.WebhookKeys
) -> None:
    seat = Seat()
    crds = [kueue.trusting(crd, keys) for crd in kueue.crds(rendered("kueue"))]
    shipped = [*crds, *specs["kueue"].webhooks]
    local = [call_loopback(manifest, seat.service_port) for manifest in shipped]
    before = [one for manifest in shipped for one in services_in(manifest.get("webhooks", manifest))]
    assert before
    for crd in local[: len(crds)]:
        assert not services_in(crd["spec"].get("conversion", {}))
    configs = [hook["clientConfig"] for manifest in local[len(crds) :] for hook in manifest["webhooks"]]
    assert configs
    assert all("service" not in one and one["caBundle"] == keys.secret_data()["ca.crt"] for one in configs)
    assert list(seat.ports) == [f"service {kueue.NAMESPACE}/{kueue.SERVICE}"]


def test_webhooks_of_the_managed_kinds_are_kept_and_those_of_pods_are_not(specs: dict[str, ComponentSpec]) -> None:
    names = {hook["name"] for configuration in specs["kueue"].webhooks for hook in configuration["webhooks"]}
    assert names >= {"mrayjob.kb.io", "vrayjob.kb.io", "mraycluster.kb.io", "mjob.kb.io", "vworkload.kb.io"}
    assert not names & {"mpod.kb.io", "vpod.kb.io", "mdeployment.kb.io"}


@pytest.mark.parametrize("name", ["kueue", "kuberay"])
def test_the_account_is_shipped_and_every_binding_has_its_role(specs: dict[str, ComponentSpec], name: str) -> None:
    spec = specs[name]
    assert spec.account is not None
    kinds = [one["kind"] for one in spec.objects]
    accounts = [one["metadata"] for one in spec.objects if one["kind"] == "ServiceAccount"]
    assert [(one["namespace"], one["name"]) for one in accounts] == [(spec.account.namespace, spec.account.name)]
    roles = {(one["kind"], one["metadata"]["name"]) for one in spec.objects if one["kind"].endswith("Role")}
    bound = {(one["roleRef"]["kind"], one["roleRef"]["name"]) for one in spec.objects if "roleRef" in one}
    assert bound == roles
    assert {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} <= set(kinds)


@pytest.mark.parametrize("name", ["kueue", "kuberay"])
def test_its_process_can_be_told(specs: dict[str, ComponentSpec], name: str) -> None:
    about = specs[name].process(Seat())
    assert about.argv[0] == f"/bin/{name}"
    assert about.ready_url.startswith("http://127.0.0.1:")
