from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raykueue.model import quantities as q


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("+2", 2),
        ("-3", -3),
        (".5", Fraction(1, 2)),
        ("1.", 1),
        ("1.5", Fraction(3, 2)),
        ("100n", Fraction(1, 10**7)),
        ("5u", Fraction(5, 10**6)),
        ("500m", Fraction(1, 2)),
        ("2k", 2000),
        ("2M", 2 * 10**6),
        ("2G", 2 * 10**9),
        ("2T", 2 * 10**12),
        ("2P", 2 * 10**15),
        ("2E", 2 * 10**18),
        ("1Ki", 1 << 10),
        ("1Mi", 1 << 20),
        ("1.5Gi", 3 << 29),
        ("1Ti", 1 << 40),
        ("1Pi", 1 << 50),
        ("1Ei", 1 << 60),
        ("12e6", 12 * 10**6),
        ("12E6", 12 * 10**6),
        ("1e-3", Fraction(1, 1000)),
        ("1E+2", 100),
        (4, 4),
        (0.5, Fraction(1, 2)),
    ],
)
def test_every_form_of_a_quantity_is_read_exactly(text: q.Quantity, value: Fraction) -> None:
    assert q.parse(text) == value


@pytest.mark.parametrize("text", ["", "1 Gi", "Gi", "1gi", "1K", "1ki", "0x10", "1e", "--1", "1e9999", "nan", "\u0661"])
def test_what_is_no_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="not a Kubernetes quantity"):
        q.parse(text)


def test_digits_below_nano_are_rounded_away_from_zero() -> None:
    assert q.parse("0.0000000001") == Fraction(1, 10**9)
    assert q.parse("-0.0000000001") == Fraction(-1, 10**9)


@pytest.mark.parametrize(
    ("resource", "text", "value"),
    [
        ("cpu", "1", 1000),
        ("cpu", "0.1", 100),
        ("cpu", "1500u", 2),
        ("memory", "1Gi", 1 << 30),
        ("memory", "100m", 1),
        ("nvidia.com/gpu", "8", 8),
        ("memory", "7828200Ki", 7828200 * 1024),
    ],
)
def test_amounts_are_millicores_or_base_units_rounded_up(resource: str, text: str, value: int) -> None:
    assert q.amount(resource, text) == value


def test_sums_and_differences_go_resource_by_resource() -> None:
    assert q.add({"cpu": 1, "memory": 2}, {"cpu": 3}) == {"cpu": 4, "memory": 2}
    assert q.sub({"cpu": 1}, {"memory": 2}) == {"cpu": 1, "memory": -2}
    assert q.excess({"cpu": 5, "memory": 1}, {"cpu": 2, "memory": 1}) == {"cpu": 3}
    assert q.largest({"cpu": 5}, {"cpu": 2, "memory": -1}) == {"cpu": 5, "memory": -1}


def test_ten_bytes_over_three_pods_with_two_left_are_six() -> None:
    assert q.scale({"memory": 10}, 3, 2) == {"memory": 6}
    assert q.scale({"memory": 10}, 3, 3) == {"memory": 10}
    assert q.scale({"memory": 10}, 3, 4) == {"memory": 10}
    assert q.scale({"memory": 10}, 0, 0) == {}


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 2500, "2.5 CPU"),
        ("cpu", 1, "0.001 CPU"),
        ("cpu", -500, "-0.5 CPU"),
        ("memory", 1 << 30, "1 GiB"),
        ("memory", 192 << 20, "192 MiB"),
        ("memory", 3 << 29, "1.5 GiB"),
        ("memory", 8209715200, "7.6 GiB (8209715200 B)"),
        ("memory", 6, "6 B"),
        ("ephemeral-storage", 1 << 20, "1 MiB of ephemeral-storage"),
        ("nvidia.com/gpu", 1, "1 nvidia.com/gpu"),
        ("pods", 3, "3 pods"),
    ],
)
def test_a_person_reads_an_amount_in_its_own_unit(resource: str, value: int, text: str) -> None:
    assert q.describe(resource, value) == text


@pytest.mark.parametrize(
    ("resource", "text", "value"),
    [
        ("cpu", "1.5", 1500),
        ("cpu", "100u", None),
        ("cpu", "2500000n", None),
        ("memory", "1.5Gi", 3 << 29),
        ("memory", "100m", None),
        ("memory", "1000m", 1),
        ("example.com/gpu", "2", 2),
    ],
)
def test_a_quantity_is_whole_if_nothing_has_to_be_rounded(resource: str, text: str, value: int | None) -> None:
    assert q.whole(resource, text) == value


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [("cpu", 2500, "2.5 CPU"), ("memory", 3 << 29, "1.5 GiB"), ("pods", 3, "3 pods"), ("cpu", None, "? CPU")],
)
def test_in_a_table_an_amount_is_a_bare_number_of_its_unit(resource: str, value: int | None, text: str) -> None:
    assert f"{q.in_units(resource, value)} {q.unit(resource)}" == text


def test_all_amounts_are_told_cpu_and_memory_first_and_zero_left_out() -> None:
    told = q.describe_all({"nvidia.com/gpu": 1, "memory": 1 << 30, "cpu": 500, "pods": 0})
    assert told == "0.5 CPU, 1 GiB, 1 nvidia.com/gpu"
    assert q.describe_all({"cpu": 0}) == "nothing"


@given(st.integers(-(10**15), 10**15), st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi"]))
def test_an_amount_is_the_smallest_integer_that_is_not_less(number: int, suffix: str) -> None:
    exact = q.parse(f"{number}{suffix}") * 1000
    rounded = q.amount("cpu", f"{number}{suffix}")
    assert rounded - 1 < exact <= rounded


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 99)),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 99)),
)
def test_what_is_left_and_what_is_beyond_make_up_the_difference(left: dict[str, int], right: dict[str, int]) -> None:
    assert {r: v for r, v in q.sub(q.excess(left, right), q.excess(right, left)).items() if v} == {
        r: v for r, v in q.sub(left, right).items() if v
    }
