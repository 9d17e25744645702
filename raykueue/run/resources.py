"""Amounts of resources as tests state and compare them: exact, whatever the spelling."""

from __future__ import annotations

from collections.abc import Mapping

from raykueue.model.quantities import Quantity, amount, describe_all
from raykueue.model.queues import FlavorResource


class Resources(dict[str, int]):
    """Resource to amount (millicores, bytes, pieces), equal to any other mapping that says the same.

    Zero and missing are the same. Plain mappings of quantities compare too:
    `queue.booked == {"cpu": "2500m", "memory": "8209715200", "nvidia.com/gpu": 1}`.
    """

    @classmethod
    def of(cls, quantities: Mapping[str, Quantity]) -> Resources:
        """From Kubernetes quantities."""
        return cls({resource: amount(resource, quantity) for resource, quantity in quantities.items()})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        theirs = other if isinstance(other, Resources) else Resources.of(other)
        return _without_zeros(self) == _without_zeros(theirs)

    def __ne__(self, other: object) -> bool:  # dict has one of its own, which would compare the spelling
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = None

    def __add__(self, other: Resources) -> Resources:
        return Resources({name: self.get(name, 0) + other.get(name, 0) for name in {**self, **other}})

    def __le__(self, other: Mapping[str, Quantity]) -> bool:
        """No more of anything."""
        theirs = other if isinstance(other, Resources) else Resources.of(other)
        return all(value <= theirs.get(name, 0) for name, value in self.items())

    def largest(self, other: Resources) -> Resources:
        """The larger amount of each."""
        return Resources({name: max(self.get(name, 0), other.get(name, 0)) for name in {**self, **other}})

    def covers(self, quantities: Mapping[str, Quantity]) -> bool:
        """Whether there is enough of everything."""
        return Resources.of(quantities) <= self

    def __repr__(self) -> str:
        return describe_all(_without_zeros(self)) or "nothing"


def over_all_flavors(amounts: Mapping[FlavorResource, int]) -> Resources:
    """Per resource, what is there in all flavors together."""
    total = Resources()
    for (_, resource), value in amounts.items():
        total += Resources({resource: value})
    return total


def _without_zeros(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: value for name, value in sorted(amounts.items()) if value}
