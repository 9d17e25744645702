"""What jobs are queued in: queues, cohorts, flavors and nodes of a generated journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.audit.written import Json, Writer, quantity


def groups(resources: Mapping[str, Mapping[str, Any]]) -> list[Json]:
    """One resource group; {"flavor": {"cpu": 3, "memory": (nominal, borrowingLimit, lendingLimit)}}."""
    flavors: list[Json] = []
    for flavor, quotas in resources.items():
        listed: list[Json] = []
        for resource, quota in quotas.items():
            nominal, borrowing, lending = quota if isinstance(quota, tuple) else (quota, None, None)
            entry: Json = {"name": resource, "nominalQuota": quantity(nominal)}
            if borrowing is not None:
                entry["borrowingLimit"] = quantity(borrowing)
            if lending is not None:
                entry["lendingLimit"] = quantity(lending)
            listed.append(entry)
        flavors.append({"name": flavor, "resources": listed})
    covered = sorted({r for quotas in resources.values() for r in quotas})
    return [{"coveredResources": covered, "flavors": flavors}]


class Queue:
    def __init__(
        self, j: Writer, name: str, cpu: Any = 3, cohort: str = "", flavors: Mapping[str, Any] | None = None
    ) -> None:
        self.j = j
        self.name = name
        self.flavors: dict[str, Any] = dict(flavors or {"default": {"cpu": cpu}})
        self.body: Json = {
            "apiVersion": f"kueue.x-k8s.io/{j.version}",
            "metadata": {"name": name, "uid": j.uid("cq")},
            "spec": {"resourceGroups": groups(self.flavors)},
        }
        if cohort:
            self.body["spec"]["cohortName" if j.version == "v1beta2" else "cohort"] = cohort
        j.emit("ClusterQueue", self.body, "ADDED")

    def edit(self, arrives: float = 0.0, **flavors: Any) -> None:
        self.flavors = flavors
        self.body["spec"]["resourceGroups"] = groups(flavors)
        self.j.emit("ClusterQueue", self.body, arrives=arrives)

    def books(self, usage: Any, reservation: Any, n: tuple[int, int] | None = None, borrowed: Any = 0) -> None:
        """usage/reservation: CPU, or {"flavor": {"resource": value}}; n: (reserving, admitted) Workloads."""
        used, reserved = self._entries(usage, borrowed), self._entries(reservation, borrowed)
        counts = n if n is not None else (int(bool(reservation)), int(bool(usage)))
        self.body["status"] = {
            "flavorsUsage": used,
            "flavorsReservation": reserved,
            "reservingWorkloads": counts[0],
            "admittedWorkloads": counts[1],
            "pendingWorkloads": 0,
        }
        self.j.emit("ClusterQueue", self.body)

    def terminate(self) -> None:
        self.body["metadata"]["deletionTimestamp"] = "2026-10-01T00:00:00Z"
        self.j.emit("ClusterQueue", self.body)

    def gone(self) -> None:
        self.j.emit("ClusterQueue", self.body, "DELETED")

    def _entries(self, totals: Any, borrowed: Any) -> list[Json]:
        values = totals if isinstance(totals, Mapping) else {"default": {"cpu": totals}}
        return [
            {
                "name": flavor,
                "resources": [
                    {"name": r, "total": quantity(values.get(flavor, {}).get(r, 0)), "borrowed": quantity(borrowed)}
                    for r in quotas
                ],
            }
            for flavor, quotas in self.flavors.items()
        ]


class Cohort:
    def __init__(self, j: Writer, name: str, parent: str = "", flavors: Mapping[str, Any] | None = None) -> None:
        self.j = j
        self.body: Json = {
            "metadata": {"name": name, "uid": j.uid("cohort")},
            "spec": {"parentName": parent, "resourceGroups": groups(flavors or {})},
        }
        j.emit("Cohort", self.body, "ADDED")

    def gone(self) -> None:
        self.j.emit("Cohort", self.body, "DELETED")


class Flavor:
    def __init__(self, j: Writer, name: str, labels: Mapping[str, str], tolerations: list[Json]) -> None:
        self.j = j
        self.body: Json = {
            "metadata": {"name": name, "uid": j.uid("flavor")},
            "spec": {"nodeLabels": dict(labels), "tolerations": tolerations},
        }
        j.emit("ResourceFlavor", self.body, "ADDED")

    def edit(self, **labels: str) -> None:
        self.body["spec"]["nodeLabels"] = labels
        self.j.emit("ResourceFlavor", self.body)

    def gone(self) -> None:
        self.j.emit("ResourceFlavor", self.body, "DELETED")


class Node:
    def __init__(self, j: Writer, name: str, labels: Mapping[str, str]) -> None:
        self.j = j
        self.body: Json = {"metadata": {"name": name, "uid": j.uid("node"), "labels": dict(labels)}}
        j.emit("Node", self.body, "ADDED")

    def relabel(self, **labels: str) -> None:
        self.body["metadata"]["labels"] = labels
        self.j.emit("Node", self.body)

    def gone(self) -> None:
        self.j.emit("Node", self.body, "DELETED")
