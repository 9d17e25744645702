from __future__ import annotations

from pathlib import Path

import pytest

from ci.support import workflow_checks
from ci.support.paths import BIN
from ci.support.workflow_checks import ACTIONLINT_OBJECTS, ZIZMOR_OBJECTS, main, outcome

OPEN_TO_ALL = """\
on: issues
jobs:
  a:
    runs-on: ubuntu-24.04
    steps:
      - run: echo ${{ github.event.issue.title }}
"""


@pytest.mark.parametrize(
    ("code", "objects", "expected"),
    [
        (0, ACTIONLINT_OBJECTS, 0),
        (1, ACTIONLINT_OBJECTS, 1),
        (3, ACTIONLINT_OBJECTS, 3),
        (0, ZIZMOR_OBJECTS, 0),
        (1, ZIZMOR_OBJECTS, 3),
        (2, ZIZMOR_OBJECTS, 3),
        (11, ZIZMOR_OBJECTS, 1),
        (14, ZIZMOR_OBJECTS, 1),
    ],
)
def test_each_tool_has_its_own_way_to_object(code: int, objects: frozenset[int], expected: int, tmp_path: Path) -> None:
    assert outcome(["sh", "-c", f"exit {code}"], tmp_path, objects) == expected


def test_a_tool_that_is_not_there_is_infrastructure(tmp_path: Path) -> None:
    assert outcome([str(tmp_path / "nosuch")], tmp_path, ACTIONLINT_OBJECTS) == 3


def test_a_workflow_that_is_unsafe_is_objected_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # By zizmor itself; actionlint may not be built where only unit tests run, so here it is one that is content.
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "raykueue").write_text("#!/bin/sh\necho true\n")
    (bin_folder / "raykueue").chmod(0o755)
    (bin_folder / "zizmor").symlink_to(BIN / "zizmor")
    monkeypatch.setattr(workflow_checks, "BIN", bin_folder)
    workflows = tmp_path / "repository" / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "a.yml").write_text(OPEN_TO_ALL)
    assert main(tmp_path / "repository") == 1


def test_without_actionlint_nothing_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raykueue").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "raykueue").chmod(0o755)
    monkeypatch.setattr(workflow_checks, "BIN", tmp_path)
    assert main(tmp_path) == 3
