from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from raykueue.errors import EXIT_INFRA, EXIT_OK, EXIT_USAGE
from raykueue.model.versions import Pair
from raykueue.toolchain.builder import NAMES, Toolchain
from raykueue.toolchain.command import add_parser
from tests.toolchain.fake_go import FakeGo


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAYKUEUE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(*words: str) -> int:
    parser = argparse.ArgumentParser(prog="raykueue")
    add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["toolchain", *words])
    code: int = arguments.run(arguments)
    return code


def test_build_prints_name_and_path_of_what_was_asked_for(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    assert run("build", "etcd", "kueue", "--kueue", "0.16.2") == EXIT_OK
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [name for name, _ in lines] == ["etcd", "kueue"]
    assert all(Path(path).is_relative_to(cache) and Path(path).exists() for _, path in lines)
    assert "kueue-0.16.2-" in lines[1][1]


def test_build_makes_what_drives_kind_when_it_is_named(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    assert run("build", "kind", "kubectl") == EXIT_OK
    folders = [Path(line.split("\t")[1]).parent.name for line in capsys.readouterr().out.splitlines()]
    assert [folder.rpartition("-")[0] for folder in folders] == ["kind-0.33.0", "kubectl-1.34.4"]


def test_build_without_names_asks_for_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def ensure(toolchain: Toolchain, pair: Pair, names: list[str] | None = None) -> dict[str, Path]:
        asked.append((pair.kueue, names))
        return {}

    monkeypatch.setattr(Toolchain, "ensure", ensure)
    assert run("build") == EXIT_OK
    assert asked == [("0.19.2", None)]


def test_path_prints_the_path_alone(capsys: pytest.CaptureFixture[str]) -> None:
    run("build", "etcd")
    built = capsys.readouterr().out.strip().split("\t")[1]
    assert run("path", "etcd") == EXIT_OK
    assert capsys.readouterr().out.strip() == built


def test_path_of_what_is_missing_says_how_to_build_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("path", "kueue", "--kueue", "0.16.2") == EXIT_INFRA
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "kueue 0.16.2 is not in the cache" in captured.err
    assert "raykueue toolchain build kueue --kueue 0.16.2" in captured.err


def test_list_shows_what_is_cached_and_what_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    run("build", "etcd", "kwok-sources")
    built = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert run("list") == EXIT_OK
    head, *lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert head.split() == ["NAME", "VERSION", "CACHED", "SIZE", "PATH"]
    assert list(rows) == list(NAMES)
    assert rows["etcd"] == ["3.6.8", "yes", "0.0", "MB", built["etcd"]]
    assert rows["kwok-sources"][-1] == built["kwok-sources"]
    assert rows["kueue"] == ["0.19.2", "no"]


def test_an_unknown_version_is_a_usage_error_that_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("build", "kueue", "--kueue", "0.11.0") == EXIT_USAGE
    assert "known: 0.10.1, 0.14.0" in capsys.readouterr().err


def test_a_failed_build_is_an_infrastructure_error(capsys: pytest.CaptureFixture[str], go: FakeGo) -> None:
    go.fail("get", "dial tcp: no such host")
    assert run("build", "etcd") == EXIT_INFRA
    assert "GOPROXY" in capsys.readouterr().err
