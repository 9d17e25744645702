from __future__ import annotations

import base64
import ssl
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from raykueue.clusters.kubeconfig import write_kubeconfig
from raykueue.clusters.pki import write_cluster_pki
from raykueue.errors import ClusterError
from raykueue.kube import access
from raykueue.kube.access import Access, load_access


def config(tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    path = tmp_path / "kubeconfig"
    entries = {
        "clusters": [{"name": "other", "cluster": {"server": "https://o"}}, {"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u"}},
            {"name": "two", "context": {"cluster": "other", "user": "u"}},
        ],
        "current-context": "one",
    }
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **entries}))
    return path


def test_our_own_kubeconfigs_are_read_without_the_official_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(access, "_by_official_client")
    ca, certificate, key = tmp_path / "ca.crt", tmp_path / "admin.crt", tmp_path / "admin.key"
    write_kubeconfig(tmp_path / "a", "https://127.0.0.1:1", ca, certificate=certificate, key=key)
    assert load_access(tmp_path / "a") == Access("https://127.0.0.1:1", str(ca), str(certificate), str(key))
    write_kubeconfig(tmp_path / "b", "https://127.0.0.1:1/", ca, token="secret")  # noqa: S106 - of a fake
    found = load_access(tmp_path / "b")
    assert found == Access("https://127.0.0.1:1", str(ca), token="secret")  # noqa: S106 - of a fake
    assert found.headers() == {"Authorization": "Bearer secret"}
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o600


def test_relative_files_are_meant_from_the_folder_of_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = config(tmp_path, {"server": "https://s", "certificate-authority": "ca.crt"}, {"token": "t"})
    monkeypatch.chdir(tmp_path.parent)
    assert load_access(kubeconfig).ca_file == str(tmp_path / "ca.crt")
    assert load_access(kubeconfig.relative_to(tmp_path.parent)).ca_file == str(tmp_path / "ca.crt")


def test_a_context_may_be_named(tmp_path: Path) -> None:
    kubeconfig = config(tmp_path, {"server": "https://s"}, {"token": "t"})
    assert load_access(kubeconfig).server == "https://s"
    assert load_access(kubeconfig, "two").server == "https://o"


def test_inlined_data_is_read_by_the_official_client(tmp_path: Path) -> None:
    write_cluster_pki(tmp_path / "pki")

    def inlined(name: str) -> str:
        return base64.b64encode((tmp_path / "pki" / name).read_bytes()).decode()

    kubeconfig = config(
        tmp_path,
        {"server": "https://127.0.0.1:1", "certificate-authority-data": inlined("ca.crt")},
        {"client-certificate-data": inlined("admin.crt"), "client-key-data": inlined("admin.key")},
    )
    found = load_access(kubeconfig)
    assert found.server == "https://127.0.0.1:1"
    assert Path(found.ca_file).read_bytes() == (tmp_path / "pki" / "ca.crt").read_bytes()
    assert found.ssl_context().get_ca_certs()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file"),
        ("a: [", "while parsing"),
        ("", "NoneType"),
        ("contexts: []\ncurrent-context: x", "x is not among"),
        ("contexts:\n- name: x\ncurrent-context: x", "context"),
    ],
)
def test_what_can_not_be_read_is_told_with_the_file_and_the_reason(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    if text is not None:
        kubeconfig.write_text(text)
    with pytest.raises(ClusterError, match=rf"(?s)kubeconfig {kubeconfig}, context \(current\): .*{reason}"):
        load_access(kubeconfig)


def test_a_context_that_does_not_exist_is_told_with_those_that_do(tmp_path: Path) -> None:
    kubeconfig = config(tmp_path, {"server": "https://s"}, {"token": "t"})
    with pytest.raises(ClusterError, match=r"context three: .*three is not among \['one', 'two'\]"):
        load_access(kubeconfig, "three")


def plugin(tmp_path: Path, valid_for: float) -> dict[str, Any]:
    """A credential plugin that gives another token at each call, good for so many seconds."""
    script = tmp_path / "login"
    script.write_text(
        f"""#!{sys.executable}
import datetime, json, pathlib
calls = pathlib.Path({str(tmp_path / "calls")!r})
number = int(calls.read_text()) + 1 if calls.exists() else 1
calls.write_text(str(number))
ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds={valid_for})
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
    "status": {{"token": f"token-{{number}}", "expirationTimestamp": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}}}}))
"""
    )
    script.chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": str(script), "interactiveMode": "Never"}}


def test_a_plugins_token_is_renewed_when_it_ends(tmp_path: Path) -> None:
    found = load_access(config(tmp_path, {"server": "https://s"}, plugin(tmp_path, valid_for=-1)))
    first, second = found.headers(), found.headers()
    assert first != second
    assert second["Authorization"].startswith("Bearer token-")


def test_a_plugins_token_that_is_good_is_kept(tmp_path: Path) -> None:
    found = load_access(config(tmp_path, {"server": "https://s"}, plugin(tmp_path, valid_for=7200)))
    assert found.headers() == found.headers() == {"Authorization": "Bearer token-1"}


def test_whom_to_trust_and_the_way_there_are_kept(tmp_path: Path) -> None:
    cluster = {"server": "https://s", "insecure-skip-tls-verify": True, "proxy-url": "http://proxy:3128"}
    found = load_access(config(tmp_path, cluster, {"token": "t"}))
    assert (found.verify, found.proxy, found.server_name) == (False, "http://proxy:3128", "")
    assert found.ssl_context().verify_mode == ssl.CERT_NONE
    named = load_access(config(tmp_path, {"server": "https://s", "tls-server-name": "api.internal"}, {"token": "t"}))
    assert (named.verify, named.server_name) == (True, "api.internal")
    assert named.ssl_context().verify_mode == ssl.CERT_REQUIRED


def test_a_proxy_that_can_not_be_used_is_told(tmp_path: Path) -> None:
    cluster = {"server": "https://s", "proxy-url": "socks5://proxy:1080"}
    with pytest.raises(ClusterError, match="proxy socks5://proxy:1080: expected http:// or https://"):
        load_access(config(tmp_path, cluster, {"token": "t"}))
