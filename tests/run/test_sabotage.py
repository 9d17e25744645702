from __future__ import annotations

import shlex
from types import SimpleNamespace
from typing import Any, cast

import pytest

from raykueue.errors import ClusterError, UsageError
from raykueue.run.job import Job
from raykueue.run.sabotage import Sabotage
from raykueue.run.session import Lease


class Head:
    """A job whose head notes commands, and breaks off."""

    def __init__(self, error: Exception) -> None:
        self.ran: list[tuple[str, ...]] = []
        self._error = error

    def run_in_head(self, *command: str) -> None:
        self.ran.append(command)
        raise self._error


def sabotage() -> Sabotage:
    nobody: Any = None
    return Sabotage(nobody, nobody, nobody)


def test_a_head_that_runs_out_of_memory_takes_the_command_with_it() -> None:
    head = Head(ClusterError("the connection was closed"))
    sabotage().exhaust_memory(cast("Job", head))
    shell, option, script = head.ran[0]
    assert (shell, option) == ("sh", "-c")
    easier_to_kill, fill = script.split(" && exec ")
    assert easier_to_kill == "echo 1000 > /proc/1/oom_score_adj"
    compile(shlex.split(fill)[2], "fill", "exec")


def test_a_head_that_is_simulated_can_not_run_out_of_memory() -> None:
    with pytest.raises(UsageError, match="simulated"):
        sabotage().exhaust_memory(cast("Job", Head(UsageError("its containers are simulated"))))


class NodesLease:
    """Notes what becomes of nodes."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []

    def stop_node(self, node: str) -> None:
        self.done.append(("stop", node))

    def start_node(self, node: str) -> None:
        self.done.append(("start", node))

    def restart_kubelet(self, node: str) -> None:
        self.done.append(("restart kubelet", node))


def test_a_lost_node_is_the_heads_and_comes_back_once() -> None:
    nobody: Any = None
    lease = NodesLease()
    sabotage = Sabotage(nobody, nobody, cast("Lease", lease))
    job = cast("Job", SimpleNamespace(head={"spec": {"nodeName": "worker2"}}))
    assert sabotage.lose_node(job) == "worker2"
    sabotage.undo()
    sabotage.undo()
    sabotage.find_node(sabotage.lose_node(job))
    sabotage.undo()
    sabotage.restart_kubelet(job)
    assert [what for what, _ in lease.done] == ["stop", "start", "stop", "start", "restart kubelet"]
    assert {node for _, node in lease.done} == {"worker2"}
