from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from ci.support.children import Ended
from tests.ci.scripts import load

INTERRUPT = -1
JUNIT = '<testsuites><testsuite tests="7" failures="1" errors="2" skipped="1"/></testsuites>'


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """ci/test with results in a folder of this test's own."""
    module = load("test")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(module, "COUNTS", tmp_path / "results" / "counts")
    return module


@pytest.fixture
def ended(stages: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, int]], int]:
    """Runs all stages, which end with these codes (0 for those not named); returns the exit code."""

    def act(codes: dict[str, int]) -> int:
        by_command = {tuple(stage.command()): stage.name for stage in stages.STAGES}

        def run(command: list[str], _: Path) -> Ended:
            name = by_command[tuple(command)]
            if name in ("unit", "smoke"):
                (stages.RESULTS / f"{name}.xml").write_text(JUNIT if codes.get(name) else JUNIT.replace("1", "0"))
            code = codes.get(name, 0)
            return Ended(max(code, 0), code < 0)

        monkeypatch.setattr(stages, "run", run)
        monkeypatch.setattr(sys, "argv", ["ci/test"])
        code: int = stages.main()
        return code

    return act


def test_every_stage_runs_after_one_that_failed(
    ended: Callable[[dict[str, int]], int], stages: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended({"style": 1}) == 1
    text = capsys.readouterr().out
    assert "not run" not in text
    assert text.count(" pass ") == len(stages.STAGES) - 1


def test_the_first_stage_that_failed_gives_the_exit_code(ended: Callable[[dict[str, int]], int]) -> None:
    assert ended({"unit": 3, "smoke": 1}) == 3
    assert ended({"unit": 1, "smoke": 3}) == 1


def test_a_tool_that_can_not_work_is_infrastructure(ended: Callable[[dict[str, int]], int]) -> None:
    assert ended({"types": 2}) == 3
    assert ended({"style": 101}) == 3


def test_a_stage_is_not_run_without_what_it_needs(
    ended: Callable[[dict[str, int]], int], stages: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended({"binaries": 3}) == 3
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("smoke", "unit"))]
    assert "not run" in rows[-1]
    assert ended({"setup": 3}) == 3
    assert capsys.readouterr().out.count("not run") == len(stages.STAGES) - 1
    assert ended({"actionlint": 3}) == 3
    assert "workflows     not run" in capsys.readouterr().out


def test_nothing_runs_after_an_interrupt(
    ended: Callable[[dict[str, int]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended({"unit": INTERRUPT}) == 2
    assert capsys.readouterr().out.count("not run") == 2


def test_the_last_line_counts_tests_and_stages(
    ended: Callable[[dict[str, int]], int], stages: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended({"unit": 1, "types": 1}) == 1
    # eight stages without tests passed, one did not; of the unit tests 3 of 7 passed, 3 did not; smoke: 7 - 0 - 2
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "16 passed, 6 failed"
    assert stages.COUNTS.read_text() == f"{last}\n"


def test_stages_come_with_what_they_need(stages: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["ci/test", "smoke"])
    assert [stage.name for stage in stages.choose()] == ["setup", "binaries", "smoke"]


def test_an_unknown_stage_is_a_usage_error_that_lists_the_others(
    stages: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ci/test", "nosuch"])
    with pytest.raises(SystemExit) as end:
        stages.choose()
    assert end.value.code == 4
    assert "no stage nosuch; there are setup, style" in capsys.readouterr().err


def test_results_that_were_never_written_count_as_nothing(stages: ModuleType, tmp_path: Path) -> None:
    assert stages.counted(tmp_path / "none.xml") == (0, 0)
    (tmp_path / "broken.xml").write_text("<testsuites><tests")
    assert stages.counted(tmp_path / "broken.xml") == (0, 0)


def test_every_python_script_of_ci_is_checked_by_the_tools(stages: ModuleType) -> None:
    assert {"ci/setup", "ci/test"} <= set(stages.scripts())
    assert "ci/conformance" not in stages.scripts()
