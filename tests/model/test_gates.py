from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykueue.model.gates import GATES, Range, both, ends, gate, outside, within

VERSIONS = [f"0.{minor}.{patch}" for minor, patch in product(range(9, 13), ("0-0", "0-rc.1", "0", "1", "5"))]
ENDS = st.sampled_from(["", *VERSIONS])
RANGES = st.lists(st.builds(Range, ENDS, ENDS), max_size=4).map(tuple)


def pair(kueue: str = "0.19.2", kuberay: str = "1.6.2") -> dict[str, str]:
    return {"kueue": kueue, "kuberay": kuberay, "kubernetes": "1.34.4"}


@pytest.mark.parametrize(
    ("version", "is_open"),
    [
        ("0.16.9", False),
        ("0.17.6", False),
        ("0.17.7", True),
        ("0.17.8", True),
        ("0.18.0", False),
        ("0.18.2", False),
        ("0.18.3", True),
        ("0.19.0", True),
        ("0.20.0", True),
        ("v0.19.2", True),
    ],
)
def test_a_fix_that_was_picked_into_older_minors_has_a_range_for_each(version: str, is_open: bool) -> None:
    assert gate("sidecar-submitter-charged").open_for(pair(kueue=version)) is is_open


@pytest.mark.parametrize(
    ("name", "closed", "opened"),
    [
        ("submitter-pod-set", pair(kueue="0.9.5"), pair(kueue="0.10.0")),
        ("v1beta2", pair(kueue="0.14.8"), pair(kueue="0.15.0")),
        ("wait-for-pods-ready-default", pair(kueue="0.18.6"), pair(kueue="0.19.0")),
        ("autoscaler-sidecar-charged", pair(kueue="0.18.6"), pair(kueue="0.19.0")),
        ("validation-failed", pair(kuberay="1.4.2"), pair(kuberay="1.5.0")),
        ("deletion-strategy", pair(kuberay="1.4.2"), pair(kuberay="1.5.0")),
        ("deletion-strategy-default", pair(kuberay="1.5.1"), pair(kuberay="1.6.0")),
        ("legacy-deletion-policy", pair(kuberay="1.5.0"), pair(kuberay="1.4.2")),
    ],
)
def test_gates_open_at_their_version(name: str, closed: dict[str, str], opened: dict[str, str]) -> None:
    assert not gate(name).open_for(closed)
    assert gate(name).open_for(opened)


@pytest.mark.parametrize(("minor", "those"), [("0.16", {"6", "7"}), ("0.17", {"1", "2"}), ("0.18", set("0123456789"))])
def test_orphans_were_finished_by_two_patch_releases_of_older_minors(minor: str, those: set[str]) -> None:
    finished = {patch for patch in "0123456789" if gate("orphans-finished").open_for(pair(kueue=f"{minor}.{patch}"))}
    assert finished == those


def test_a_pre_release_comes_before_its_release_and_after_the_minor_before() -> None:
    assert "0.19.0-rc.1" not in Range("0.19.0")
    assert "0.19.0-rc.1" in Range("0.18.3", "0.19.0")
    assert not gate("sidecar-submitter-charged").open_for(pair(kueue="0.18.0-rc.0"))


def test_minors_compare_as_numbers_and_no_ranges_restrict_nothing() -> None:
    assert "0.9.5" not in Range("0.10.0")
    assert within("0.1.0", ())


@given(RANGES, RANGES)
def test_versions_are_outside_or_inside_and_in_both_if_they_are_in_each(
    some: tuple[Range, ...], others: tuple[Range, ...]
) -> None:
    for version in VERSIONS:
        in_some, in_others = (any(version in one for one in ranges) for ranges in (some, others))
        assert any(version in one for one in outside(some)) is not in_some
        assert any(version in one for one in both(some, others)) is (in_some and in_others)


def test_a_range_ends_with_the_first_version_that_is_in_none() -> None:
    assert ends((Range("0.18.0", "0.18.3"), Range(before="0.9.7"))) == ("0.9.7", "0.18.3")
    assert ends((Range("0.9.0", "0.10.0-0"), Range("0.11.0", "0.11.2"))) == ("0.10.0", "0.11.2")
    assert ends((Range("0.9.0", "0.10.0-0"), Range("0.10.0-0", "0.10.2"))) == ("0.10.2",)
    assert ends((Range("0.9.0"),)) == ends(()) == ()


def test_a_gate_says_why_a_test_is_not_applicable() -> None:
    text = gate("v1beta2").refusal(pair(kueue="0.14.8"))
    assert "needs kueue >= 0.15.0, this is 0.14.8" in text


def test_what_cannot_be_looked_up_is_refused_by_name() -> None:
    with pytest.raises(KeyError, match="v1beta2"):
        gate("v1beta3")
    with pytest.raises(ValueError, match="doesn't say which kueue"):
        gate("v1beta2").open_for({"kuberay": "1.6.2"})
    with pytest.raises(ValueError, match="not a version"):
        gate("v1beta2").open_for(pair(kueue="latest"))


def test_every_gate_has_a_name_of_its_own_and_says_where_it_comes_from() -> None:
    assert len({g.name for g in GATES}) == len(GATES)
    assert all("@v" in g.source and g.consequence for g in GATES)
