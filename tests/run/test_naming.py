from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from raykueue.run.manifests import load
from raykueue.run.naming import OWN_KINDS, PRIORITY_LABEL, SCOPE_LABEL, Names

NAME = st.text("xyz-", max_size=3).map(lambda middle: f"n{middle}n")
NAMES = st.lists(NAME, max_size=3, unique=True)


@st.composite
def queues(draw: st.DrawFn) -> dict[str, Any]:
    """A ClusterQueue that may name everything that it can name."""
    spec: dict[str, Any] = {
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [
            {"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": []} for name in flavors]}
            for flavors in draw(st.lists(NAMES, max_size=2))
        ],
    }
    cohort = draw(st.sampled_from(["cohort", "cohortName", None]))
    if cohort is not None:
        spec[cohort] = draw(NAME)
    if draw(st.booleans()):
        spec["admissionChecks"] = draw(NAMES)
    if draw(st.booleans()):
        checks = [{"name": name, "onFlavors": draw(NAMES)} for name in draw(NAMES)]
        spec["admissionChecksStrategy"] = {"admissionChecks": checks}
    return manifest("ClusterQueue", draw(NAME), spec)


def manifest(kind: str, name: str, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}}
    return body if spec is None else {**body, "spec": spec}


MANIFESTS = st.one_of(
    queues(),
    st.builds(lambda n, c: manifest("LocalQueue", n, {"clusterQueue": c}, namespace="default"), NAME, NAME),
    st.builds(lambda n, p: manifest("Cohort", n, {"parentName": p}), NAME, NAME),
    st.builds(lambda n: manifest("ResourceFlavor", n, {"nodeLabels": {"a": n}}), NAME),
    st.builds(lambda n: manifest("AdmissionCheck", n, {"controllerName": n}), NAME),
    st.builds(lambda n: manifest("WorkloadPriorityClass", n), NAME),
    st.builds(lambda n, p: manifest("RayJob", n, {"entrypoint": p}, labels={PRIORITY_LABEL: p, "a": p}), NAME, NAME),
)


def reversed_by(names: Names, changed: Any) -> Any:
    """What was changed, with every real name put back by the table; a name that is not in it stays."""
    back = {real: entry.split(" ", 1)[1] for entry, real in names.table().items()}
    if isinstance(changed, dict):
        return {key: reversed_by(names, value) for key, value in changed.items()}
    if isinstance(changed, list):
        return [reversed_by(names, value) for value in changed]
    return back.get(changed, changed) if isinstance(changed, str) else changed


def without_scope(changed: dict[str, Any], original: dict[str, Any]) -> dict[str, Any]:
    """With the scope's label taken off, and the namespace as it was."""
    metadata = dict(changed["metadata"])
    labels = {key: value for key, value in metadata.pop("labels").items() if key != SCOPE_LABEL}
    metadata.pop("namespace", None)
    kept = {key: original["metadata"][key] for key in ("namespace",) if key in original["metadata"]}
    return {**changed, "metadata": metadata | kept | ({"labels": labels} if labels else {})}


@settings(max_examples=40, deadline=None)  # no deadline: the machine may be busy
@given(st.lists(MANIFESTS, max_size=6))
def test_nothing_but_names_changes_and_they_can_be_put_back(originals: list[dict[str, Any]]) -> None:
    names = Names("1a2b3c")
    kept = copy.deepcopy(originals)
    changed = [names.rename(original) for original in originals]
    assert originals == kept
    for one, original in zip(changed, originals, strict=True):
        assert without_scope(reversed_by(names, one), original) == original
        assert one["metadata"]["labels"][SCOPE_LABEL] == "1a2b3c"


@settings(max_examples=40, deadline=None)  # no deadline: the machine may be busy
@given(st.lists(st.tuples(st.sampled_from(sorted(OWN_KINDS)), NAME), max_size=20))
def test_two_objects_of_a_kind_never_get_one_name(asked: list[tuple[str, str]]) -> None:
    names = Names("1a2b3c")
    real = {one: names.real(*one) for one in asked}
    assert len({(kind, name) for (kind, _), name in real.items()}) == len(real)
    assert names.table() == {f"{kind} {name}": value for (kind, name), value in real.items()}
    assert all(names.real(*one) == value for one, value in real.items())


@settings(max_examples=40, deadline=None)  # no deadline: the machine may be busy
@given(MANIFESTS)
def test_no_two_scopes_share_an_object(original: dict[str, Any]) -> None:
    one, other = Names("aaaaaa"), Names("bbbbbb")
    one.rename(original)
    other.rename(original)
    assert not set(one.table().values()) & set(other.table().values())
    assert one.namespace != other.namespace


def test_every_reference_of_a_cluster_queue_is_renamed() -> None:
    spec = {
        "cohort": "team",
        "resourceGroups": [{"flavors": [{"name": "spot"}, {"name": "fixed"}]}],
        "admissionChecks": ["capacity"],
        "admissionChecksStrategy": {"admissionChecks": [{"name": "budget", "onFlavors": ["spot"]}]},
    }
    names = Names("x")
    changed = names.rename(manifest("ClusterQueue", "queue", spec))
    assert changed["metadata"]["name"] == "queue-x"
    assert "namespace" not in changed["metadata"]
    assert changed["spec"] == {
        "cohort": "team-x",
        "resourceGroups": [{"flavors": [{"name": "spot-x"}, {"name": "fixed-x"}]}],
        "admissionChecks": ["capacity-x"],
        "admissionChecksStrategy": {"admissionChecks": [{"name": "budget-x", "onFlavors": ["spot-x"]}]},
    }
    assert names.of("ResourceFlavor") == ("spot-x", "fixed-x")
    assert names.of("AdmissionCheck") == ("capacity-x", "budget-x")


def test_objects_with_a_namespace_keep_their_name_in_the_scopes_own() -> None:
    names = Names("x")
    local = names.rename(manifest("LocalQueue", "user-queue", {"clusterQueue": "queue"}, namespace="default"))
    assert local["metadata"] == {"name": "user-queue", "namespace": "raykueue-x", "labels": {SCOPE_LABEL: "x"}}
    assert local["spec"] == {"clusterQueue": "queue-x"}
    job = names.rename({"kind": "RayJob", "metadata": {"generateName": "job-", "labels": {PRIORITY_LABEL: "prod"}}})
    assert job["metadata"]["generateName"] == "job-"
    assert job["metadata"]["labels"][PRIORITY_LABEL] == "prod-x"


def test_a_node_belongs_to_nobody() -> None:
    changed = Names("x").rename(manifest("Node", "node"))
    assert changed["metadata"] == {"name": "node", "labels": {SCOPE_LABEL: "x"}}


def test_the_suites_own_manifests_refer_to_each_other_after_it() -> None:
    names = Names("x")
    changed = {one["kind"]: one for one in (names.rename(document) for document in load("queue.yaml"))}
    assert changed["LocalQueue"]["spec"]["clusterQueue"] == changed["ClusterQueue"]["metadata"]["name"]
    flavors = changed["ClusterQueue"]["spec"]["resourceGroups"][0]["flavors"]
    assert flavors[0]["name"] == changed["ResourceFlavor"]["metadata"]["name"]
