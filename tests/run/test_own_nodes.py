"""A node of a test's own: its name, label and taint are the scope's, and so are those of flavors that lead there."""

from __future__ import annotations

from typing import Any

from raykueue.run.manifests import load
from raykueue.run.naming import NODE_LABEL, Names


def renamed(scope: str) -> tuple[Names, dict[str, dict[str, Any]]]:
    names = Names(scope)
    return names, {one["kind"]: one for one in (names.rename(document) for document in load("tight-node.yaml"))}


def test_a_flavor_leads_to_the_scopes_own_node_and_tolerates_its_taint() -> None:
    names, changed = renamed("x")
    node, flavor = changed["Node"], changed["ResourceFlavor"]
    assert node["metadata"]["name"] == "tight-node-x"
    assert names.of("Node") == ("tight-node-x",)
    assert flavor["spec"]["nodeLabels"].items() <= node["metadata"]["labels"].items()
    (taint,), (toleration,) = node["spec"]["taints"], flavor["spec"]["tolerations"]
    assert (taint["key"], taint["value"]) == (toleration["key"], toleration["value"]) == (NODE_LABEL, "tight-node-x")


def test_two_scopes_share_no_node() -> None:
    ones, others = renamed("x")[1]["Node"], renamed("y")[1]["Node"]
    assert ones["metadata"]["name"] != others["metadata"]["name"]
    assert not set(ones["metadata"]["labels"].values()) & set(others["metadata"]["labels"].values())


def test_the_node_is_as_big_as_the_quota_and_both_as_what_one_job_asks() -> None:
    changed = renamed("x")[1]
    offer = changed["Node"]["status"]["allocatable"]
    (group,) = changed["ClusterQueue"]["spec"]["resourceGroups"]
    quota = {one["name"]: one["nominalQuota"] for one in group["flavors"][0]["resources"]}
    assert quota == {name: offer[name] for name in ("cpu", "memory")} == {"cpu": "2", "memory": "4Gi"}


def test_labels_and_taints_that_are_not_about_the_node_stay() -> None:
    flavor = {
        "kind": "ResourceFlavor",
        "metadata": {"name": "flavor"},
        "spec": {"nodeLabels": {"disk": "ssd"}, "tolerations": [{"key": "disk", "value": "ssd"}]},
    }
    assert Names("x").rename(flavor)["spec"] == flavor["spec"]
