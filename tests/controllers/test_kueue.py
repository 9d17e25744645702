from __future__ import annotations

import base64
import datetime
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from raykueue.clusters import pki
from raykueue.clusters.protocol import ComponentSpec, ServiceAccount
from raykueue.clusters.services import call_loopback
from raykueue.controllers import kueue
from raykueue.controllers.kueue import WebhookKeys
from raykueue.controllers.settings import DEFAULT, Settings
from tests.controllers.shipped import CONFIG, Seat
from tests.controllers.shipped import kueue as shipped


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> WebhookKeys:
    return WebhookKeys(tmp_path_factory.mktemp("cache") / "kueue-webhook-keys")


def component(keys: WebhookKeys, settings: Settings = DEFAULT, version: str = "0.19.2") -> ComponentSpec:
    return kueue.component(Path("/bin/kueue"), version, shipped(), keys, settings)


def config(keys: WebhookKeys, seat: Seat, settings: Settings = DEFAULT) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(component(keys, settings).process(seat).files["config.yaml"])
    return found


def certificate(keys: WebhookKeys, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(keys.files[name].encode())


def hooks(spec: ComponentSpec) -> Iterator[dict[str, Any]]:
    for configuration in spec.webhooks:
        yield from configuration["webhooks"]


def test_the_authority_carries_the_name_that_kueues_rotation_looks_for(keys: WebhookKeys) -> None:
    names = certificate(keys, "ca.crt").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["kueue-ca"]
    assert certificate(keys, "ca.crt").extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    key = serialization.load_pem_private_key(keys.files["ca.key"].encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert keys.files["ca.key"].startswith("-----BEGIN RSA PRIVATE KEY-----")


def test_the_serving_certificate_is_the_authoritys_and_good_on_loopback(keys: WebhookKeys) -> None:
    serving = certificate(keys, "tls.crt")
    serving.verify_directly_issued_by(certificate(keys, "ca.crt"))
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert "kueue-webhook-service.kueue-system.svc" in names.get_values_for_type(x509.DNSName)
    key = serialization.load_pem_private_key(keys.files["tls.key"].encode(), None)
    assert key.public_key() == serving.public_key()


def test_keys_are_made_once_and_only_their_user_can_read_them(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "keys"
    first = WebhookKeys(folder)
    assert WebhookKeys(folder).files == first.files
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert sorted(path.name for path in folder.parent.iterdir()) == ["keys", "keys.lock"]


def test_keys_of_which_one_is_missing_are_all_made_anew(tmp_path: Path) -> None:
    first = WebhookKeys(tmp_path / "keys")
    (tmp_path / "keys" / "tls.crt").unlink()
    again = WebhookKeys(tmp_path / "keys")
    assert all(again.files[name] != first.files[name] for name in first.files)


@pytest.mark.parametrize(("days", "kept"), [(180 + 90 + 1, True), (180 + 90 - 1, False)])
def test_keys_are_made_anew_while_a_saved_state_could_still_outlive_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int, kept: bool
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pki, "VALID_DAYS", days)
        old = WebhookKeys(tmp_path / "keys")
    assert (WebhookKeys(tmp_path / "keys").files == old.files) is kept


def test_new_keys_are_good_for_longer_than_they_must_be(keys: WebhookKeys) -> None:
    for name in ("ca.crt", "tls.crt"):
        left = certificate(keys, name).not_valid_after_utc - datetime.datetime.now(datetime.UTC)
        assert left > datetime.timedelta(days=180 + 90)


def test_the_secret_is_made_beforehand_with_what_a_kubelet_would_mount(keys: WebhookKeys) -> None:
    spec = component(keys)
    secret = next(one for one in spec.objects if one["kind"] == "Secret")
    assert {name: base64.b64decode(text).decode() for name, text in secret["data"].items()} == keys.files
    files = spec.process(Seat()).files
    assert {name: files[f"certs/{name}"] for name in keys.files} == keys.files
    assert "data" not in shipped().one("Secret", "webhook-server-cert")


def test_the_suites_settings_lie_over_what_is_shipped(keys: WebhookKeys) -> None:
    about = config(keys, Seat(), Settings(kueue_config={"metrics": {"enableClusterQueueResources": True}}))
    assert about["integrations"] == {"frameworks": list(kueue.FRAMEWORKS), "labelKeysToCopy": ["a"]}
    assert about["metrics"]["enableClusterQueueResources"] is True
    assert about["leaderElection"] == {"leaderElect": False, "resourceName": "lock"}


def test_a_test_can_not_move_it_off_loopback(keys: WebhookKeys) -> None:
    seat = Seat()
    about = config(keys, seat, Settings(kueue_config={"webhook": {"port": 9443, "host": "0.0.0.0"}}))  # noqa: S104 - refused
    port = seat.service_port("kueue-system", "kueue-webhook-service")
    assert about["webhook"] == {"host": "127.0.0.1", "port": port, "certDir": "/seat/certs"}
    assert about["health"]["healthProbeBindAddress"] == f"127.0.0.1:{seat.port('kueue health')}"
    assert about["metrics"]["bindAddress"].startswith("127.0.0.1:")
    assert CONFIG["webhook"] == {"port": 9443}


@pytest.mark.parametrize(("version", "off"), [("0.18.3", False), ("0.19.0", True), ("0.19.2", True)])
def test_waiting_for_pods_is_off_where_it_would_be_on_by_default(keys: WebhookKeys, version: str, off: bool) -> None:
    argv = component(keys, version=version).process(Seat()).argv
    flag = next(arg for arg in argv if arg.startswith("--feature-gates="))
    assert ("DisableWaitForPodsReady=true" in flag) is off
    assert "VisibilityOnDemand=false" in flag


def test_a_test_may_switch_a_gate_that_the_suite_sets(keys: WebhookKeys) -> None:
    settings = Settings(kueue_gates={"DisableWaitForPodsReady": False, "A": True})
    argv = component(keys, settings).process(Seat()).argv
    assert "--feature-gates=A=true,DisableWaitForPodsReady=false,VisibilityOnDemand=false" in argv


def test_only_webhooks_of_what_the_suite_manages_are_registered(keys: WebhookKeys) -> None:
    # vboth also serves a group that nobody installed, so it goes as a whole.
    assert [hook["name"] for hook in hooks(component(keys))] == ["mrayjob", "vworkload"]
    assert all(hook["clientConfig"]["caBundle"] == keys.secret_data()["ca.crt"] for hook in hooks(component(keys)))
    assert len(shipped().one("MutatingWebhookConfiguration", "mutating")["webhooks"]) == 3


def test_the_webhook_port_is_the_one_at_which_the_api_server_calls(keys: WebhookKeys) -> None:
    seat = Seat()
    port = config(keys, seat)["webhook"]["port"]
    for configuration in component(keys).webhooks:
        for hook in call_loopback(configuration, seat.service_port)["webhooks"]:
            assert hook["clientConfig"]["url"] == f"https://127.0.0.1:{port}/{hook['name']}"


def test_it_has_its_own_account_and_the_namespace_comes_first(keys: WebhookKeys) -> None:
    spec = component(keys)
    assert spec.account == ServiceAccount("kueue-system", "kueue-controller-manager")
    assert spec.objects[0]["kind"] == "Namespace"


def test_crds_convert_under_the_same_authority(keys: WebhookKeys) -> None:
    crds = [kueue.trusting(crd, keys) for crd in kueue.crds(shipped())]
    assert [crd["metadata"]["name"] for crd in crds] == ["workloads.kueue.x-k8s.io", "topologies.kueue.x-k8s.io"]
    assert crds[0]["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == keys.secret_data()["ca.crt"]


def test_its_certificates_are_mounted_where_a_process_can_have_files_of_its_own(keys: WebhookKeys) -> None:
    process = kueue.component(Path("/bin/kueue"), "0.19.2", shipped(), keys).process(Seat(can_mount=True))

    assert json.loads(process.files["config.yaml"])["internalCertManagement"] == {"enable": False}
    assert process.mounts == {"/etc/kueue/metrics/certs": "certs"}


def test_elsewhere_it_manages_them_itself(keys: WebhookKeys) -> None:
    process = kueue.component(Path("/bin/kueue"), "0.19.2", shipped(), keys).process(Seat(can_mount=False))

    assert "internalCertManagement" not in json.loads(process.files["config.yaml"])
    assert process.mounts == {}
