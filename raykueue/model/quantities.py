"""Kubernetes quantities as exact integers: what the ledger counts in, and how a person reads it.

An *amount* is an integer per resource: millicores for cpu, base units (bytes, pieces) for everything else, rounded up
once per pod, as Kueue does (kueue pkg/resources/requests.go:146-151@v0.19.2). No float is ever involved.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TypeAlias

Amounts: TypeAlias = Mapping[str, int]
"""Resource name to amount. A missing resource is zero."""

Quantity: TypeAlias = str | int | float
"""As decoded from JSON or YAML: usually a string, a bare number if the author left out the quotes."""

CPU = "cpu"
PODS = "pods"

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO = 10**9
_PATTERN = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE])?)")
_MAX_EXPONENT = 400  # a text like 1e999999999 must not eat the memory
_BYTES = ("memory", "storage", "ephemeral-storage")


@lru_cache(maxsize=4096)
def parse(quantity: Quantity) -> Fraction:
    """The exact number a quantity stands for; digits below nano are rounded away from zero, as the API server does.

    Source: k8s.io/apimachinery pkg/api/resource/quantity.go ParseQuantity@v0.34.4.

    Raises:
        ValueError: it is no quantity.
    """
    text = str(quantity)
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"not a Kubernetes quantity: {text!r}; write a number with an optional suffix, as 500m or 2Gi")
    number, exponent, suffix = match.groups()
    value = Fraction(number)
    if exponent is not None:
        if abs(int(exponent)) > _MAX_EXPONENT:
            raise ValueError(f"not a Kubernetes quantity: {text!r}; its exponent is out of range")
        value *= Fraction(10) ** int(exponent)
    elif suffix in _BINARY:
        value *= 1 << _BINARY[suffix]
    else:
        value *= Fraction(10) ** _DECIMAL[suffix or ""]
    nanos = value * _NANO
    return Fraction(ceil(nanos) if nanos >= 0 else -ceil(-nanos), _NANO)


def round_up(resource: str, value: Fraction) -> int:
    """The amount that stands for an exact value: rounded up to a millicore, a byte, a piece."""
    return ceil(value * 1000) if resource == CPU else ceil(value)


@lru_cache(maxsize=4096)
def amount(resource: str, quantity: Quantity) -> int:
    """The quantity of a resource as the ledger counts it. Raises ValueError if it is no quantity."""
    return round_up(resource, parse(quantity))


@lru_cache(maxsize=4096)
def whole(resource: str, quantity: Quantity) -> int | None:
    """The amount that is exactly this quantity; None if rounding would change it. Raises ValueError as `parse` does."""
    value = parse(quantity) * (1000 if resource == CPU else 1)
    return value.numerator if value.denominator == 1 else None


def amounts(quantities: Mapping[str, Quantity] | None) -> dict[str, int]:
    """A Kubernetes resource list as amounts; None is empty."""
    return {resource: amount(resource, quantity) for resource, quantity in (quantities or {}).items()}


def add(*terms: Amounts) -> dict[str, int]:
    """The sum, resource by resource."""
    total: dict[str, int] = {}
    for term in terms:
        for resource, value in term.items():
            total[resource] = total.get(resource, 0) + value
    return total


def sub(left: Amounts, right: Amounts) -> dict[str, int]:
    """`left - right`, resource by resource; may be negative."""
    return {r: left.get(r, 0) - right.get(r, 0) for r in _union(left, right)}


def excess(left: Amounts, right: Amounts) -> dict[str, int]:
    """What `left` has beyond `right`: the positive differences only."""
    return {r: value for r, value in sub(left, right).items() if value > 0}


def largest(*terms: Amounts) -> dict[str, int]:
    """The maximum, resource by resource; a resource that a term lacks does not take part."""
    top: dict[str, int] = {}
    for term in terms:
        for resource, value in term.items():
            top[resource] = max(top.get(resource, value), value)
    return top


def scale(total: Amounts, count: int, left: int) -> dict[str, int]:
    """The share of `left` pods in a total for `count`: divided first, in integers, then multiplied.

    Kueue rounds the same way: 10 bytes for 3 pods of which 2 are left are 6 (kueue pkg/workload/workload.go:704-752,
    pkg/resources/requests.go@v0.19.2). Nothing is scaled up, and no pods have no share.
    """
    if count <= 0:
        return {}
    return {r: value // count * left if left < count else value for r, value in total.items()}


def describe(resource: str, value: int) -> str:
    """An amount for people: `2.5 CPU`, `7.6 GiB` (with the exact bytes if rounded), `1 nvidia.com/gpu`."""
    if resource == CPU:
        return f"{_decimal(Fraction(value, 1000))} CPU"
    if resource in _BYTES or resource.startswith("hugepages-"):
        suffix = "" if resource == "memory" else f" of {resource}"
        return _bytes(value) + suffix
    return f"{value} {resource}"


def unit(resource: str) -> str:
    """The unit of `in_units`: CPU, GiB, or the resource's own name."""
    return {CPU: CPU.upper(), "memory": "GiB"}.get(resource, resource)


def in_units(resource: str, value: int | None) -> str:
    """An amount as a bare number of its unit, for tables: at most three decimals; `?` if it is not known."""
    if value is None:
        return "?"
    size = {CPU: 1000, "memory": 1 << 30}.get(resource, 1)
    return _decimal(Fraction(value, size))


def describe_all(values: Amounts) -> str:
    """All non-zero amounts for people, cpu and memory first; `nothing` if there is none."""
    order = {CPU: 0, "memory": 1}
    shown = sorted((r for r, value in values.items() if value), key=lambda r: (order.get(r, 2), r))
    return ", ".join(describe(r, values[r]) for r in shown) or "nothing"


def _bytes(value: int) -> str:
    for unit in reversed(_BINARY):
        size = 1 << _BINARY[unit]
        if abs(value) >= size:
            if value * 1000 % size == 0:
                return f"{_decimal(Fraction(value, size))} {unit}B"
            return f"{value / size:.1f} {unit}B ({value} B)"
    return f"{value} B"


def _decimal(value: Fraction) -> str:
    """At most three decimals, no trailing zeros. The callers pass nothing finer."""
    return f"{float(value):.3f}".rstrip("0").rstrip(".")


def _union(left: Iterable[str], right: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*left, *right]))
