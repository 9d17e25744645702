from __future__ import annotations

import shlex
from typing import Any, cast

import pytest

from raykueue.errors import ClusterError, UsageError
from raykueue.run.job import Job
from raykueue.run.sabotage import Sabotage


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
