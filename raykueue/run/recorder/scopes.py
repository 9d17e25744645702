"""What belongs to one test: the names of a scope, and which open scope an event goes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeAlias, TypeVar

from raykueue.errors import UsageError
from raykueue.model.events import Event
from raykueue.model.kinds import BY_NAME

Key: TypeAlias = tuple[str, str]
"""("", namespace) for everything in a namespace, (kind, name) for an object without one."""


def key_of(event: Event) -> Key:
    """Every event has exactly one key."""
    metadata = event.object["metadata"]
    if BY_NAME[event.kind].namespaced:
        return "", str(metadata["namespace"])
    return event.kind, str(metadata["name"])


@dataclass(frozen=True, slots=True)
class ScopeNames:
    """One test's namespaces and the objects without a namespace that it uses, by name.

    No two scopes share a namespace, ClusterQueue, flavor or cohort; the others may be shared, and then every scope
    gets their events.
    """

    name: str
    namespaces: tuple[str, ...] = ()
    cluster_queues: tuple[str, ...] = ()
    flavors: tuple[str, ...] = ()
    cohorts: tuple[str, ...] = ()
    priority_classes: tuple[str, ...] = ()
    admission_checks: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> ScopeNames:
        """From decoded JSON.

        Raises:
            UsageError: a field is not one of this class.
        """
        known = [each.name for each in fields(cls)]
        if unknown := set(body) - set(known):
            raise UsageError(f"scope: no such field {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        return cls(str(body["name"]), **{name: tuple(value) for name, value in body.items() if name != "name"})

    def own_keys(self) -> Iterator[Key]:
        """What no other scope may have."""
        for namespace in self.namespaces:
            yield "", namespace
            yield "Namespace", namespace
        yield from (("ClusterQueue", name) for name in self.cluster_queues)
        yield from (("ResourceFlavor", name) for name in self.flavors)
        yield from (("Cohort", name) for name in self.cohorts)

    def all_keys(self) -> Iterator[Key]:
        """Everything whose events concern the scope."""
        yield from self.own_keys()
        yield from (("WorkloadPriorityClass", name) for name in self.priority_classes)
        yield from (("AdmissionCheck", name) for name in self.admission_checks)
        yield from (("Node", name) for name in self.nodes)


T = TypeVar("T")


@dataclass(slots=True)
class Router(Generic[T]):
    """Which open scopes an event goes to. `T` is whatever the owner of the router keeps per scope."""

    _open: dict[str, tuple[ScopeNames, T]] = field(default_factory=dict)
    _by_key: dict[Key, dict[str, T]] = field(default_factory=dict)
    _ever: dict[Key, str] = field(default_factory=dict)

    def open(self, names: ScopeNames, value: T) -> None:
        """From now on events of these names go to `value`.

        Raises:
            UsageError: the scope's name, or something that only one scope may have, was used before in this run.
        """
        for key in (("scope", names.name), *names.own_keys()):
            if key in self._ever:
                raise UsageError(
                    f"scope {names.name}: {key[0] or 'namespace'} {key[1]} belongs to scope {self._ever[key]}; "
                    "give every scope names of its own"
                )
        self._ever.update(dict.fromkeys((("scope", names.name), *names.own_keys()), names.name))
        self._open[names.name] = names, value
        for key in names.all_keys():
            self._by_key.setdefault(key, {})[names.name] = value

    def close(self, name: str) -> T:
        """Nothing goes there any more.

        Raises:
            UsageError: no such scope is open.
        """
        names, value = self.find(name)
        del self._open[name]
        for key in names.all_keys():
            self._by_key[key].pop(name, None)
            if not self._by_key[key]:
                del self._by_key[key]
        return value

    def find(self, name: str) -> tuple[ScopeNames, T]:
        """An open scope.

        Raises:
            UsageError: no such scope is open.
        """
        try:
            return self._open[name]
        except KeyError:
            raise UsageError(f"scope {name} is not open; open are: {', '.join(sorted(self._open)) or 'none'}") from None

    def receivers(self, key: Key) -> Iterator[T]:
        """Who gets an event with this key."""
        yield from self._by_key.get(key, {}).values()

    def open_values(self) -> list[T]:
        """Of all open scopes, in order of opening."""
        return [value for _, value in self._open.values()]
