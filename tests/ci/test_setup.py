from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.ci.scripts import load


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """ci/setup for a project of this test's own; commands are noted, and only `venv` does something."""
    module = load("setup")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(module, "STAMP", tmp_path / ".venv" / "raykueue-setup")
    monkeypatch.setattr(sys, "argv", ["ci/setup"])
    monkeypatch.setattr(module, "commands", [], raising=False)

    def run(command: list[str], hint: str) -> None:
        assert hint
        module.commands.append(command)
        if "venv" in command:
            (tmp_path / ".venv" / "bin").mkdir(parents=True)
            (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)

    monkeypatch.setattr(module, "run", run)
    return module


def test_the_first_time_it_makes_the_environment_and_installs(setup: ModuleType) -> None:
    assert setup.main() == 0
    venv, pip, project = setup.commands
    assert venv[1:3] == ["-m", "venv"]
    assert pip[-1] == "pip>=25.1"
    assert project[-4:] == ["--editable", str(setup.ROOT), "--group", f"{setup.ROOT / 'pyproject.toml'}:dev"]


def test_the_second_time_it_does_nothing(setup: ModuleType) -> None:
    setup.main()
    setup.commands.clear()
    assert setup.main() == 0
    assert setup.commands == []


def test_a_changed_project_file_installs_again_into_the_same_environment(setup: ModuleType) -> None:
    setup.main()
    setup.commands.clear()
    (setup.ROOT / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert setup.main() == 0
    assert [command[1:3] for command in setup.commands] == [["-m", "pip"], ["-m", "pip"]]


def test_an_environment_whose_python_is_gone_is_made_anew(setup: ModuleType) -> None:
    setup.main()
    setup.commands.clear()
    (setup.VENV / "bin" / "python").unlink()
    (setup.VENV / "bin" / "python").symlink_to("/nowhere/python3.11")
    (setup.VENV / "bin").rename(setup.VENV / "old")
    assert setup.main() == 0
    assert setup.commands[0][1:3] == ["-m", "venv"]


def test_an_install_that_failed_is_tried_again_next_time(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    working = setup.run

    def failing(command: list[str], hint: str) -> None:
        if "--editable" in command:
            raise SystemExit(3)
        working(command, hint)

    monkeypatch.setattr(setup, "run", failing)
    with pytest.raises(SystemExit):
        setup.main()
    monkeypatch.setattr(setup, "run", working)
    setup.commands.clear()
    assert setup.main() == 0
    assert len(setup.commands) == 2


def test_a_failing_command_is_shown_with_its_last_lines_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    module = load("setup")
    with pytest.raises(SystemExit) as end:
        module.run([sys.executable, "-c", "print('no route'); raise SystemExit(9)"], "check the network")
    assert end.value.code == 3
    message = capsys.readouterr().err
    assert "ended with code 9: check the network" in message
    assert "    no route\n" in message


def test_help_says_what_it_does_and_does_nothing() -> None:
    command = [sys.executable, str(Path(load("setup").__file__ or "")), "--help"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert ended.stdout.startswith("Makes .venv")
