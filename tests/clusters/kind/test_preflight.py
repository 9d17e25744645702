from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from raykueue.clusters.kind.commands import Commands
from raykueue.clusters.kind.docker import Docker
from raykueue.clusters.kind.preflight import DISK_GIB, GIB, INSTANCES, MEMORY_GIB, WATCHES, Machine, check
from raykueue.errors import ClusterError
from tests.clusters.kind.tools import Tools

ENOUGH = Machine(DISK_GIB * GIB, MEMORY_GIB * GIB, INSTANCES, WATCHES)


def test_a_machine_with_just_enough_has_no_problem() -> None:
    assert ENOUGH.problems() == []


@pytest.mark.parametrize(
    ("lacks", "advice"),
    [
        ({"disk_free": DISK_GIB * GIB - 1}, "`docker system prune`"),
        ({"memory_free": MEMORY_GIB * GIB - 1}, "GiB of memory are free, expected 4"),
        ({"inotify_instances": INSTANCES - 1}, "`sudo sysctl fs.inotify.max_user_instances=512`"),
        ({"inotify_watches": WATCHES - 1}, "`sudo sysctl fs.inotify.max_user_watches=524288`"),
    ],
)
def test_each_thing_that_is_missing_is_one_line_of_advice(lacks: dict[str, int], advice: str) -> None:
    [problem] = dataclasses.replace(ENOUGH, **lacks).problems()
    assert advice in problem
    assert "\n" not in problem


def test_what_can_not_be_seen_is_no_problem(tmp_path: Path) -> None:
    elsewhere = Machine.seen({"DockerRootDir": str(tmp_path / "not-here"), "MemTotal": 16 * GIB})
    assert elsewhere == Machine(None, 16 * GIB, None, None)
    assert elsewhere.problems() == []


def test_a_machine_is_seen_as_the_kernel_tells(tmp_path: Path) -> None:
    (tmp_path / "max_user_instances").write_text("8192\n")
    seen = Machine.seen({"DockerRootDir": str(tmp_path)}, inotify=tmp_path)
    assert (seen.inotify_instances, seen.inotify_watches) == (8192, None)
    assert seen.disk_free is not None
    assert seen.memory_free > 0


def test_all_that_is_missing_is_told_at_once(tools: Tools, commands: Commands) -> None:
    tools.answer("info", out='{"DockerRootDir": "/not/here", "MemTotal": 1073741824}')
    with pytest.raises(ClusterError, match=r"^no kind cluster can be started here: 1\.0 GiB of memory are free"):
        check(Docker(commands))
