from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from raykueue.model.gates import GATES, Gate
from raykueue.model.gates.signs import AtLeast, Feature, Field, KnowsFeature, Seen, Served, Sign, Webhook
from raykueue.toolchain.builder import Toolchain
from raykueue.toolchain.lock import load_versions


def crd(**versions: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "versions": [
            {"name": name, "served": name != "v1alpha1", "schema": {"openAPIV3Schema": {"properties": schema}}}
            for name, schema in versions.items()
        ]
    }


RULES = {"type": "array", "items": {"properties": {"condition": {"properties": {"jobStatus": {}}}}}}
SPEC = {"spec": {"properties": {"rules": RULES, "podSets": {"maxItems": 10}, "free": {"type": "array"}}}}
SEEN = Seen(
    crds={"a": crd(v1alpha1={"old": {}}, v1beta1={"status": {}}, v1beta2=SPEC), "ga": crd(v1={"x": {}}, v1beta9={})},
    features={"kueue": {"On": True, "Off": False}},
    webhooks=frozenset({"mrayjob.kb.io"}),
)


@pytest.mark.parametrize(
    ("sign", "shows"),
    [
        (Field("a", "spec.rules"), True),
        (Field("a", "spec.rules[].condition.jobStatus"), True),
        (Field("a", "spec.rules[].condition.other"), False),
        (Field("a", "spec.none.condition"), False),
        (Field("a", "status"), False),  # of the older version
        (Field("ga", "x"), True),  # v1 is newer than any beta
        (Field("none", "spec"), None),
        (AtLeast("a", "spec.podSets", 10), True),
        (AtLeast("a", "spec.podSets", 11), False),
        (AtLeast("a", "spec.free", 99), True),
        (AtLeast("a", "spec.none", 1), None),
        (Served("a", "v1beta1"), True),
        (Served("a", "v1alpha1"), False),
        (Served("none", "v1"), None),
        (Feature("kueue", "On"), True),
        (Feature("kueue", "Off"), False),
        (Feature("kueue", "Unknown"), False),
        (Feature("kuberay", "On"), None),
        (KnowsFeature("kueue", "Off"), True),
        (KnowsFeature("kueue", "Unknown"), False),
        (KnowsFeature("kuberay", "Off"), None),
        (Webhook("mrayjob.kb.io"), True),
        (Webhook("mrayservice.kb.io"), False),
    ],
    ids=str,
)
def test_a_sign_is_there_or_not_or_can_not_be_known(sign: Sign, shows: bool | None) -> None:
    assert sign.shows(SEEN) is shows


def test_what_nothing_serves_has_no_fields() -> None:
    assert Field("a", "spec").shows(Seen({"a": crd(v1alpha1={"spec": {}})})) is None


def test_webhooks_that_nobody_may_see_say_nothing() -> None:
    assert Webhook("mrayjob.kb.io").shows(Seen()) is None


RELEASES = [r for r in load_versions().releases if r.product in ("kueue", "kuberay")]


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_every_range_says_what_the_release_itself_ships(release: Any) -> None:
    versions = load_versions()
    found = Toolchain(versions).have(f"{release.product}-sources", versions.pair(**{release.product: release.version}))
    if found is None:
        pytest.skip(f"{release} is not in the cache: `raykueue toolchain build` fetches it")
    seen = Seen(crds=_crds(found), webhooks=_webhooks(found))
    for gate in (gate for gate in GATES if gate.product == release.product and _in_manifests(gate)):
        assert gate.sign is not None
        assert gate.sign.shows(seen) == gate.open_for({release.product: release.version}), gate.name


def _in_manifests(gate: Gate) -> bool:
    return isinstance(gate.sign, (Field, AtLeast, Served, Webhook))


def _webhooks(sources: Path) -> frozenset[str]:
    documents = [
        document
        for path in sources.rglob("webhook/manifests.yaml")
        for document in yaml.safe_load_all(path.read_text())
    ]
    return frozenset(
        hook["name"]
        for document in documents
        if document["kind"] == "MutatingWebhookConfiguration"
        for hook in document["webhooks"]
    )


def _crds(sources: Path) -> dict[str, Mapping[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    wanted = {gate.sign.crd for gate in GATES if isinstance(gate.sign, (Field, AtLeast, Served))}
    named = {f"{crd.split('.', 1)[1]}_{crd.split('.', 1)[0]}.yaml": crd for crd in wanted}
    return {
        named[path.name]: yaml.load(path.read_text(), Loader=loader)["spec"]  # noqa: S506 - CSafeLoader is a safe one
        for path in sources.rglob("crd/bases/*.yaml")
        if path.name in named
    }
