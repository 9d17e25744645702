from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykueue.run.resources import Resources

NAMES = st.sampled_from(["cpu", "memory", "nvidia.com/gpu"])
AMOUNTS = st.dictionaries(NAMES, st.integers(0, 10**12)).map(Resources)


def test_amounts_are_equal_whatever_the_spelling() -> None:
    booked = Resources.of({"cpu": "2500m", "memory": "8209715200", "nvidia.com/gpu": 1})
    assert booked == {"cpu": 2.5, "memory": 8209715200, "nvidia.com/gpu": "1"}
    assert booked == Resources({"cpu": 2500, "memory": 8209715200, "nvidia.com/gpu": 1})
    assert booked != {"cpu": 2, "memory": 8209715200, "nvidia.com/gpu": 1}
    assert Resources.of({"memory": "1Gi"}) == {"memory": 2**30}


def test_zero_and_missing_are_the_same_for_equal_and_for_unequal() -> None:
    assert Resources({"cpu": 0}) == {}
    assert not Resources({"cpu": 0}) != {}  # noqa: SIM202 - dict has an operator of its own
    assert Resources() == Resources({"memory": 0})
    assert Resources({"cpu": 1}) != {}


def test_what_is_no_mapping_is_never_equal() -> None:
    assert Resources() != 0
    assert Resources() != []


def test_no_more_is_compared_by_amounts_too() -> None:
    assert Resources({"cpu": 2500}) <= {"cpu": 3}
    assert not Resources({"cpu": 3500}) <= {"cpu": 3}
    assert Resources({"cpu": 0}) <= {}
    assert not Resources({"memory": 1}) <= {"cpu": 3}
    assert Resources({"cpu": 3000}).covers({"cpu": "2500m"})
    assert not Resources({"cpu": 3000}).covers({"cpu": 2, "memory": 1})


@settings(max_examples=40, deadline=None)  # no deadline: the machine may be busy
@given(AMOUNTS, AMOUNTS)
def test_a_sum_has_what_both_have(one: Resources, other: Resources) -> None:
    total = one + other
    assert total == other + one
    assert one <= total
    assert all(total.get(name, 0) == one.get(name, 0) + other.get(name, 0) for name in {*one, *other})


@settings(max_examples=40, deadline=None)  # no deadline: the machine may be busy
@given(AMOUNTS, AMOUNTS)
def test_the_largest_is_the_smallest_that_both_fit_into(one: Resources, other: Resources) -> None:
    largest = one.largest(other)
    assert one <= largest
    assert other <= largest
    assert all(largest.get(name, 0) in (one.get(name, 0), other.get(name, 0)) for name in {*one, *other})


@settings(max_examples=40, deadline=None)  # no deadline: the machine may be busy
@given(AMOUNTS)
def test_equal_is_no_more_both_ways(one: Resources) -> None:
    assert one == Resources(one)
    assert one <= one + Resources()
    assert not one != one + Resources()  # noqa: SIM202 - dict has an operator of its own


def test_they_are_told_without_zeros() -> None:
    assert repr(Resources({"cpu": 0})) == "nothing"
    assert "memory" not in repr(Resources({"cpu": 2500, "memory": 0}))


def test_they_can_not_be_keys() -> None:
    with pytest.raises(TypeError):
        hash(Resources())
