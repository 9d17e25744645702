from __future__ import annotations

import copy
from typing import Any

from raykueue.clusters.services import call_loopback, trust


def hooks(*configs: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hooks"},
        "webhooks": [
            {"name": f"hook-{number}", "failurePolicy": "Fail", "clientConfig": config}
            for number, config in enumerate(configs)
        ],
    }


def crd(conversion: dict[str, Any] | None) -> dict[str, Any]:
    spec: dict[str, Any] = {"group": "example.org"} | ({"conversion": conversion} if conversion else {})
    return {"kind": "CustomResourceDefinition", "metadata": {"name": "things.example.org"}, "spec": spec}


def service(path: str | None = None) -> dict[str, Any]:
    about = {"name": "webhook", "namespace": "system"}
    return {"service": about | ({"path": path} if path else {})}


def port_of(namespace: str, name: str) -> int:
    assert (namespace, name) == ("system", "webhook")
    return 12345


def test_a_webhook_is_called_on_loopback_at_its_own_path() -> None:
    changed = call_loopback(hooks(service("/validate"), service()), port_of)
    assert [hook["clientConfig"] for hook in changed["webhooks"]] == [
        {"url": "https://127.0.0.1:12345/validate"},
        {"url": "https://127.0.0.1:12345/"},
    ]


def test_nothing_else_of_a_webhook_changes_and_the_original_stays() -> None:
    original = hooks(service("/validate"))
    kept = copy.deepcopy(original)
    changed = call_loopback(original, port_of)
    assert original == kept
    changed["webhooks"][0]["clientConfig"] = original["webhooks"][0]["clientConfig"]
    assert changed == original


def test_the_conversion_of_a_crd_is_called_on_loopback() -> None:
    shipped = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": service("/c")}}
    conversion = call_loopback(crd(shipped), port_of)["spec"]["conversion"]
    assert conversion["webhook"]["clientConfig"] == {"url": "https://127.0.0.1:12345/c"}
    assert conversion["webhook"]["conversionReviewVersions"] == ["v1"]


def test_what_calls_no_service_stays_as_it_is() -> None:
    for manifest in (crd(None), crd({"strategy": "None"}), hooks({"url": "https://elsewhere/"})):
        assert call_loopback(manifest, port_of) == manifest


def test_every_call_trusts_the_authority() -> None:
    shipped = {"strategy": "Webhook", "webhook": {"clientConfig": service("/c")}}
    assert trust(crd(shipped), "Q0E=")["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == "Q0E="
    trusting = trust(hooks(service(), service()), "Q0E=")
    assert [hook["clientConfig"]["caBundle"] for hook in trusting["webhooks"]] == ["Q0E=", "Q0E="]
    assert trust(crd(None), "Q0E=") == crd(None)
