"""The scripts that the workflows' jobs are made of."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from raykueue.cli import main
from raykueue.errors import EXIT_USAGE, UsageError
from raykueue.model.versions import Pair
from raykueue.report.gate import command
from raykueue.toolchain.builder import Toolchain
from raykueue.toolchain.lock import load_versions
from tests.ci.scripts import ROOT, load
from tests.report.gate.reports import ASKED, a_record, write
from tests.report.samples import FACTS

VERSIONS = load_versions()


@pytest.fixture
def binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """ci/jobs/binaries with a cache of this test's own, in which everything can be had at once."""
    monkeypatch.setenv("RAYKUEUE_CACHE", str(tmp_path / "cache"))
    module = load("jobs/binaries")

    def ensure(toolchain: Toolchain, pair: Pair, names: list[str]) -> dict[str, Path]:
        for name in names:
            (toolchain.store.root / toolchain.artifact(name, pair).folder).mkdir(parents=True, exist_ok=True)
        return {}

    monkeypatch.setattr(Toolchain, "ensure", ensure)
    return module


def lines(text: str) -> dict[str, str]:
    """Outputs of a step, as GitHub reads them."""
    found: dict[str, str] = {}
    rest = text.splitlines()
    while rest:
        name, mark, end = rest.pop(0).partition("<<")
        if mark:
            found[name] = "\n".join(rest[: rest.index(end)])
            del rest[: rest.index(end) + 1]
        else:
            name, _, value = name.partition("=")
            found[name] = value
    return found


def test_the_key_of_binaries_is_that_of_their_pins(binaries: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    keys = []
    for pairs in ("default", "0.19.2+1.6.2", "0.10.1+1.3.2", "default"):
        assert binaries.main(["key", pairs]) == 0
        keys.append(lines(capsys.readouterr().out)["key"])
    assert keys[0] == keys[1] == keys[3] != keys[2]


def test_a_key_has_the_prefix_of_all_and_changes_with_what_is_needed(
    binaries: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    binaries.main(["key", "default"])
    plain = lines(capsys.readouterr().out)
    binaries.main(["key", "default", "--kind"])
    kind = lines(capsys.readouterr().out)
    assert plain["key"] != kind["key"]
    assert plain["key"].startswith(plain["prefix"])
    assert plain["paths"].splitlines() == [str(tmp_path / "cache" / name) for name in ("bin", "src")]


def test_a_cache_keeps_only_what_its_pairs_need(binaries: ModuleType, tmp_path: Path) -> None:
    assert binaries.main(["build", "0.19.2+1.6.2,0.10.1+1.3.2"]) == 0
    names = {path.name.rpartition("-")[0] for path in (tmp_path / "cache" / "bin").iterdir()}
    assert {"kueue-0.19.2", "kueue-0.10.1", "etcd-3.6.8"} <= names
    assert binaries.main(["build", "default", "--prune"]) == 0
    left = {path.name.rpartition("-")[0] for path in (tmp_path / "cache" / "bin").iterdir()}
    assert left == names - {"kueue-0.10.1", "kuberay-1.3.2"}


def test_an_unknown_pair_is_a_usage_error(binaries: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert binaries.main(["key", "9.9.9+1.6.2"]) == UsageError.exit_code
    assert "kueue 9.9.9 is not in versions.toml" in capsys.readouterr().err


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """ci/jobs/gate in a folder of this test's own: exit code, and what is on the run's page.

    `raykueue gate` is the real one, but in this process, at the commit of the samples, and without known issues, which
    may be overdue today.
    """
    module = load("jobs/gate")

    def call(words: list[str], **_: object) -> SimpleNamespace:
        assert Path(words[0]).name == "raykueue"
        return SimpleNamespace(returncode=main(words[1:]))

    monkeypatch.setattr(module.subprocess, "run", call)
    monkeypatch.setattr(command, "_known_issues", list)
    monkeypatch.setattr(command, "commit_of", lambda _: FACTS.commit)
    monkeypatch.setattr(command, "_now", lambda: ASKED)
    page = tmp_path / "page.md"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    monkeypatch.delenv("NEEDS", raising=False)
    monkeypatch.delenv("BEGIN_ANEW", raising=False)

    def run(*words: str, needs: Mapping[str, str] | None = None) -> tuple[int, str]:
        page.unlink(missing_ok=True)
        if needs is not None:
            monkeypatch.setenv("NEEDS", json.dumps({name: {"result": result} for name, result in needs.items()}))
        code: int = module.main(["pull-request", "evidence", *words])
        return code, page.read_text() if page.exists() else ""

    return run


def all_required(base: Path) -> Path:
    """A report of everything that gate pull-request requires."""
    from tests.ci.test_required import REQUIRED

    cells = REQUIRED.gate("pull-request").cells(VERSIONS, ())
    return write(base, [a_record(test) for tests in cells.values() for test in tests])


def test_a_gate_opens_for_what_the_jobs_left_and_keeps_it(
    gate: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_required(tmp_path / "evidence" / "a")
    monkeypatch.setenv("BEGIN_ANEW", "true")
    code, page = gate("--baseline", "before", "--keep", "before", needs={"checks": "success"})
    assert (code, page.splitlines()[0][:26]) == (0, "# gate pull-request OPEN: ")
    assert list((tmp_path / "before" / "a").iterdir())


@pytest.mark.parametrize("result", ["failure", "cancelled", "skipped"])
def test_a_job_that_did_not_succeed_keeps_the_gate_closed(
    result: str, gate: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    all_required(tmp_path / "evidence" / "a")
    code, page = gate("--keep", "before", needs={"checks": result, "conformance": "success"})
    assert code == 3
    assert f"* job checks: {result}" in page
    assert not (tmp_path / "before").exists()


def test_nothing_left_by_any_job_is_no_open_gate(gate: Callable[..., tuple[int, str]]) -> None:
    code, page = gate(needs={"conformance": "success"})
    assert code == 5
    assert page.startswith("# gate pull-request CLOSED")


def test_what_was_kept_is_the_next_baseline(gate: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    all_required(tmp_path / "before" / "a")
    all_required(tmp_path / "evidence" / "a")
    _, page = gate("--baseline", "before")
    assert "one of the reports themselves" in page


@pytest.mark.parametrize("anew", ["", "false", None])
def test_a_baseline_that_is_lost_keeps_the_gate_closed(
    anew: str | None, gate: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if anew is not None:
        monkeypatch.setenv("BEGIN_ANEW", anew)
    all_required(tmp_path / "evidence" / "a")
    code, page = gate("--baseline", "before", "--keep", "before")
    assert code == EXIT_USAGE
    assert "there is no such folder" in page
    assert "* the baseline is lost, or never was: start the workflow by hand, without a baseline" in page
    assert not (tmp_path / "before").exists()


def test_nothing_is_compared_where_somebody_begins_anew(
    gate: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_required(tmp_path / "evidence" / "a")
    monkeypatch.setenv("BEGIN_ANEW", "true")
    code, page = gate("--baseline", "before")
    assert (code, "No baseline was given" in page, "the baseline is lost" in page) == (0, True, False)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What a shell script of ci/jobs finds around it, with a `raykueue` that only tells what it is asked."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    shutil.copytree(ROOT / "ci" / "jobs", tmp_path / "ci" / "jobs")
    (tmp_path / "ci" / "setup").write_text("")
    fake = tmp_path / ".venv" / "bin" / "raykueue"
    fake.write_text('#!/bin/sh\necho "asked: $*"\nexit "${FAKE_CODE-0}"\n')
    fake.chmod(0o755)
    (fake.parent / "python").write_text('#!/bin/sh\necho "python: $*"\nexit "${FAKE_PIP-0}"\n')
    (fake.parent / "python").chmod(0o755)
    return tmp_path


def script(clone: Path, name: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(clone / "ci" / "jobs" / name), *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_night_is_planned_from_what_versions_toml_has(clone: Path) -> None:
    assert script(clone, "plan").stdout.splitlines() == [
        "supported=asked: matrix list --pairs supported --github --shards 3",
        "exploratory=asked: matrix list --pairs exploratory --github --shards 3",
        "kind=asked: matrix list --pairs pinned --github",
    ]
    assert script(clone, "plan", "5").stdout.count("--shards 5") == 2


def test_a_plan_that_can_not_be_made_is_no_empty_one(clone: Path) -> None:
    assert script(clone, "plan", FAKE_CODE="4").returncode == 4


def test_a_run_begins_without_what_another_left_and_ends_as_the_run_did(clone: Path) -> None:
    (clone / "build" / "job").mkdir(parents=True)
    ended = script(clone, "conformance", "--pairs", "all", "--shard", "2/7", FAKE_CODE="1")
    assert ended.stdout == "asked: matrix run --out build/job --pairs all --shard 2/7\n"
    assert ended.returncode == 1
    assert not (clone / "build" / "job").exists()


@pytest.mark.parametrize("words", [("--cluster", "kind"), ("--cluster=kind",)])
def test_what_kind_clusters_need_is_installed_where_they_are_asked_for(words: tuple[str, ...], clone: Path) -> None:
    ended = script(clone, "conformance", "--pairs", "default", "--", "suites/nodes", *words)
    assert ended.stdout.splitlines() == [
        "python: -m pip --disable-pip-version-check install --quiet --editable .[kind]",
        f"asked: matrix run --out build/job --pairs default -- suites/nodes {' '.join(words)}",
    ]
    assert script(clone, "conformance", "--", *words, FAKE_PIP="1").returncode == 3


def test_evidence_is_what_a_run_left_without_links(clone: Path) -> None:
    report = write(clone / "build" / "job" / "pairs" / "a")
    (report / ".records.jsonl.tmp").write_text("")
    assert script(clone, "evidence").returncode == 0
    copied = clone / "build" / "evidence" / "pairs" / "a"
    assert [path.name for path in copied.iterdir()] == [report.name]
    assert (copied / report.name / "run.json").read_bytes() == (report / "run.json").read_bytes()
    assert not (copied / report.name / ".records.jsonl.tmp").exists()


def test_where_no_run_left_anything_there_is_no_evidence_and_no_error(clone: Path) -> None:
    assert script(clone, "evidence").returncode == 0
    assert list((clone / "build" / "evidence").iterdir()) == []


def test_a_grid_is_a_picture_and_decides_nothing(clone: Path) -> None:
    ended = script(clone, "grid", "a", "b", FAKE_CODE="1")
    assert ended.returncode == 0
    assert ended.stdout.splitlines() == [
        "asked: matrix collect a b --out build/grid",
        "ci/jobs/grid: the shards together came to exit code 1",
    ]
