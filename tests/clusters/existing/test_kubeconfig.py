from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from raykueue.clusters.existing.kubeconfig import minimal, user_kubeconfigs, write
from raykueue.errors import UsageError
from raykueue.kube.access import load_access


def kubeconfig(
    path: Path,
    context: str = "dev",
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    name: str = "c",
) -> Path:
    document = {
        "clusters": [{"name": name, "cluster": cluster or {"server": "https://s"}}],
        "users": [{"name": "u", "user": user or {"token": "t"}}, {"name": "other", "user": {"token": "secret"}}],
        "contexts": [{"name": context, "context": {"cluster": name, "user": "u", "namespace": "team"}}],
        "current-context": "another",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document))
    return path


def test_one_context_is_copied_with_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    text = kubeconfig(tmp_path / "theirs").read_text()
    write(minimal([tmp_path / "theirs"], "dev"), tmp_path / "ours")
    copied = yaml.safe_load((tmp_path / "ours").read_text())
    assert copied["current-context"] == "dev"
    assert [user["name"] for user in copied["users"]] == ["u"]
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "theirs").read_text() == text
    assert load_access(tmp_path / "ours").token == "t"  # noqa: S105 - of a fake


def test_files_and_plugins_beside_the_kubeconfig_are_found_from_the_copy(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./bin/login", "args": ["--x"]}
    cluster = {"server": "https://s", "certificate-authority": "ca.crt", "proxy-url": "http://p:1"}
    file = kubeconfig(tmp_path / "k" / "config", cluster=cluster, user={"exec": plugin})
    copied = minimal([file], "dev")
    assert copied["clusters"][0]["cluster"] == {**cluster, "certificate-authority": str(tmp_path / "k" / "ca.crt")}
    assert copied["users"][0]["user"]["exec"] == {**plugin, "command": str(tmp_path / "k" / "bin/login")}


def test_a_plugin_in_the_path_stays_as_it_is(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", user={"exec": {"command": "login"}})
    assert minimal([file], "dev")["users"][0]["user"] == {"exec": {"command": "login"}}


def test_the_first_file_that_names_something_wins_as_with_kubectl(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path / "a", cluster={"server": "https://first"})
    second = kubeconfig(tmp_path / "b", cluster={"server": "https://second"})
    assert minimal([tmp_path / "missing", first, second], "dev")["clusters"][0]["cluster"]["server"] == "https://first"


@pytest.mark.parametrize(
    ("context", "name", "server"),
    [
        ("prod", "c", "https://s"),
        ("eu-Production-2", "c", "https://s"),
        ("team_prd", "c", "https://s"),
        ("dev", "gke_company_europe_live", "https://s"),
        ("dev", "c", "https://api.prod.example.org:6443"),
    ],
)
def test_a_protected_name_is_refused_wherever_it_stands(tmp_path: Path, context: str, name: str, server: str) -> None:
    file = kubeconfig(tmp_path / "config", context, {"server": server}, name=name)
    with pytest.raises(UsageError, match=rf"--context {context}: .*it runs on no cluster whose name has"):
        minimal([file], context)


@pytest.mark.parametrize("context", ["products", "reproduce", "delivery", "dev-1"])
def test_words_that_only_contain_one_are_allowed(tmp_path: Path, context: str) -> None:
    assert minimal([kubeconfig(tmp_path / "config", context)], context)["current-context"] == context


def test_what_is_not_there_is_told_with_what_is(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config")
    with pytest.raises(UsageError, match="--context test: no context 'test' in the kubeconfig; there are: dev"):
        minimal([file], "test")
    with pytest.raises(UsageError, match=r"--context dev: there is no kubeconfig; looked for .*/missing"):
        minimal([tmp_path / "missing"], "dev")
    (tmp_path / "broken").write_text("a: [")
    with pytest.raises(UsageError, match=r"kubeconfig .*/broken can't be read"):
        minimal([tmp_path / "broken"], "dev")


def test_kubeconfigs_are_looked_up_where_kubectl_does() -> None:
    assert user_kubeconfigs({"KUBECONFIG": "/a:/b:"}) == [Path("/a"), Path("/b")]
    assert user_kubeconfigs({"HOME": "/home/me"}) == [Path("/home/me/.kube/config")]
